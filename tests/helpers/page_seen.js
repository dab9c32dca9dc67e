// Returns the lines of an element.
node => {
  const added = [...node.querySelectorAll('.bar')].map(bar => {
    const told = document.createElement('span');
    const parts = [...bar.children].filter(each => each.style.width).map(
      each => `${each.dataset.part || each.dataset.category || ''} ${parseFloat(each.style.width).toFixed(1)}`.trim());
    told.textContent = `[${parts.join(', ')}] `;
    bar.before(told);
    return told;
  });
  for (const each of node.querySelectorAll('td[title]')) {
    const told = document.createElement('span');
    told.textContent = ` {${each.title}}`;
    each.append(told);
    added.push(told);
  }
  const lines = [], say = text => { if ((text = text.replace(/\s+/g, ' ').trim())) lines.push(text); };
  const drawn = svg => {
    const counted = {};
    for (const each of svg.querySelectorAll('[class]'))
      if (!each.matches('text, g')) counted[each.className.baseVal] = (counted[each.className.baseVal] || 0) + 1;
    const texts = [...svg.querySelectorAll('text, polyline')].map(
      each => each.textContent || each.getAttribute('points')).filter(Boolean);
    return [...texts, ...Object.entries(counted).map(([name, number]) => `${number} ${name}`)].join(', ');
  };
  const walk = each => {
    if (each.nodeType === Node.TEXT_NODE) return say(each.data);
    if (each.nodeType !== Node.ELEMENT_NODE || !each.checkVisibility()) return;
    if (each.matches('dt')) return say(`${each.innerText}: ${each.nextElementSibling.innerText}`);
    if (each.matches('dd')) return;
    const inside = each.querySelector('li, tr, p, dl, details, h2, h3, figcaption, svg');
    if (each.matches('svg')) say(`${each.getAttribute('aria-label') || ''} <${drawn(each)}>`);
    else if (inside) each.childNodes.forEach(walk);
    else say(each.innerText);
  };
  walk(node);
  added.forEach(each => each.remove());
  return lines;
}
