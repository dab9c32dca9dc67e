// Runs before the first paint, so that the page never flashes in the wrong theme. localStorage may be forbidden.
window.jaxobsTheme = (() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const stored = () => { try { return localStorage.getItem("jaxobs-theme") || "system"; } catch { return "system"; } };
  let choice = stored();
  if (!["system", "light", "dark"].includes(choice)) choice = "system";
  const apply = (forced) => {
    const theme = forced || (choice === "system" ? (dark.matches ? "dark" : "light") : choice);
    document.documentElement.dataset.theme = theme;
  };
  dark.addEventListener("change", () => apply());
  window.addEventListener("beforeprint", () => apply("light"));
  window.addEventListener("afterprint", () => apply());
  apply();
  return {
    get choice() { return choice; },
    next() {
      choice = { system: "light", light: "dark", dark: "system" }[choice];
      try { localStorage.setItem("jaxobs-theme", choice); } catch { /* private mode: kept for this visit */ }
      apply();
      return choice;
    },
  };
})();
