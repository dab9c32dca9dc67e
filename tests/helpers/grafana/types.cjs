// Compares dashboards with the types of @grafana/schema, as TypeScript does: a name that a type does not have, or a
// value that it does not allow, is a mistake. What is absent is none, for Grafana fills in its defaults.
//
//   node types.cjs GRAFANA VERSION <JSON        GRAFANA: a folder with node_modules; VERSION: schema, schema-10, ...
//
// Reads {dashboards: {name: JSON}, panels: [{name, type, options, custom}], manifests: {name: spec}} and writes a list
// of sentences.
const fs = require('node:fs');
const path = require('node:path');

const [folder, version] = process.argv.slice(2);
const modules = path.join(folder, 'node_modules');
const ts = require(path.join(modules, 'typescript'));
const schema = path.join(modules, '@grafana', version);
const given = JSON.parse(fs.readFileSync(0, 'utf8'));

const index = ['dist/types/index.d.ts', 'dist/cjs/index.d.cts', 'dist/index.d.ts']
  .map((each) => path.join(schema, each))
  .find((each) => fs.existsSync(each));

// An enum of texts does not take a text: its values take its place.
function withoutEnums(text) {
  return text.replace(/declare enum (\w+) \{([^}]*)\}/g, (_, name, body) => {
    let next = 0;
    const members = [...body.replace(/\/\*[^]*?\*\//g, '').matchAll(/(\w+)(?:\s*=\s*([^,\n]+))?/g)].map(([, member, value]) => {
      const type = value === undefined ? String(next) : value.trim();
      next = Number(type) + 1;
      return [member, type];
    });
    const inner = members.map(([member, type]) => `type ${member} = ${type};`).join(' ');
    return `type ${name} = ${members.map(([, type]) => type).join(' | ')};\nexport declare namespace ${name} { ${inner} }`;
  });
}

function panelTypes(type) {
  const inside = path.join(schema, 'dist/esm/raw/composable', type.replace('-', ''), 'panelcfg/x');
  const file = fs.readdirSync(inside).find((each) => each.endsWith('_types.gen.d.ts'));
  const other = path.join(schema, 'dist/types/raw/composable', type.replace('-', ''), 'panelcfg/x/types.gen.d.ts');
  return fs.existsSync(other) ? other : path.join(inside, file);
}

const compared = []; // {kind, name, type, value}
const modules_of = [...new Set(given.panels.map((each) => each.type))].sort();
for (const { name, type, options, custom } of given.panels) {
  const module = type.replace('-', '');
  compared.push({ kind: `${type} options`, name, type: `${module}.Options`, value: options });
  const known = /\bFieldConfig\b/.test(fs.readFileSync(panelTypes(type), 'utf8'));
  compared.push({ kind: `${type} custom`, name, type: known ? `${module}.FieldConfig` : 'Record<never, never>', value: custom });
}
for (const [name, value] of Object.entries(given.dashboards)) {
  compared.push({ kind: 'dashboard', name, type: 'Dashboard', value });
}
const manifest = path.join(schema, 'dist/types/schema/dashboard/v2/types.spec.gen');
const manifests = fs.existsSync(`${manifest}.d.ts`);
if (manifests) {
  for (const [name, value] of Object.entries(given.manifests)) {
    compared.push({ kind: 'manifest', name, type: 'v2.Spec', value });
  }
}

const head = [
  `import type { Dashboard } from '@grafana/schema';`,
  'type Some<T> = T extends (infer U)[] ? Some<U>[] : T extends object ? { [K in keyof T]?: Some<T[K]> } : T;',
  ...modules_of.map((type) => `import type * as ${type.replace('-', '')} from ${JSON.stringify(panelTypes(type).replace(/\.d\.ts$/, ''))};`),
  ...(manifests ? [`import type * as v2 from ${JSON.stringify(manifest)};`] : []),
];
const options = {
  strict: true, noEmit: true, skipLibCheck: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler, baseUrl: folder, paths: { '@grafana/schema': [index] }, types: [],
};
const check = path.join(folder, 'check.ts');
const host = ts.createCompilerHost(options);
const files = new Map();
let text = '';
const exists = host.fileExists;
host.fileExists = (file) => file === check || exists(file);
host.getSourceFile = (file, target) => {
  if (file === check) {
    return ts.createSourceFile(file, text, target);
  }
  if (!files.has(file)) {
    const read = host.readFile(file);
    files.set(file, read && ts.createSourceFile(file, file.includes('/@grafana/schema') ? withoutEnums(read) : read, target));
  }
  return files.get(file);
};

function without(value, key) {
  if (Array.isArray(value)) {
    return value.map((each) => without(each, key));
  }
  if (value === null || typeof value !== 'object') {
    return value;
  }
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key).map(([name, each]) => [name, without(each, key)]));
}

// TypeScript names one unknown property of an object: it is taken out, and the others are looked at.
const unknown = new Set();
let said;
for (let again = true; again; ) {
  again = false;
  said = [];
  text = [...head, ...compared.map(({ type, value }, n) => `export const c${n}: Some<${type}> = ${JSON.stringify(value)};`)].join('\n');
  const program = ts.createProgram([check], options, host);
  const source = program.getSourceFile(check);
  for (const each of [...program.getOptionsDiagnostics(), ...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]) {
    const line = each.file ? source.getLineAndCharacterOfPosition(each.start).line - head.length : -1;
    const of = compared[line] ?? { kind: '', name: '' };
    const message = ts.flattenDiagnosticMessageText(each.messageText, ' ');
    const key = /known properties, (?:and|but) '"?(\w+)"?' does not exist/.exec(message);
    if (key && of.kind) {
      again ||= !unknown.has(`${of.kind}: ${key[1]}`);
      unknown.add(`${of.kind}: ${key[1]}`);
    } else {
      said.push(`${of.name} (${of.kind}): ${message} (${text.slice(each.start - 60, each.start + 60)})`);
    }
  }
  for (const each of unknown) {
    const [kind, key] = each.split(': ');
    for (const of of compared.filter((one) => one.kind === kind)) {
      of.value = without(of.value, key);
    }
  }
}
console.log(JSON.stringify({ compared: compared.length, unknown: [...unknown].sort(), said }));
