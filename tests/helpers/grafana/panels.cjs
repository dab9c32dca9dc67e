// Does with Prometheus' answers what Grafana does between its data source and a panel, with Grafana's own code: the
// transformations, then the field options and their overrides.
//
//   node panels.cjs GRAFANA <JSON        GRAFANA: a folder with node_modules
//
// Reads [{name, panel, answers: [{refId, result}]}] and writes for each panel its frames: names, texts and links of their
// fields, the overrides that no field matches, and what Grafana does not know.
const fs = require('node:fs');
const path = require('node:path');

const modules = path.join(process.argv[2], 'node_modules');
const grafana = require(path.join(modules, '@grafana/data'));
const { lastValueFrom } = require(path.join(modules, 'rxjs'));
globalThis.window = {}; // not before: libraries take it for a browser
globalThis.navigator ??= { languages: ['en-US'], language: 'en-US' };

const transformers = Object.values(grafana.standardTransformers);
grafana.standardTransformersRegistry.setInit(() =>
  transformers
    .filter((each, n) => transformers.findIndex((other) => other.id === each.id) === n)
    .map((each) => ({ id: each.id, name: each.name, transformation: () => Promise.resolve(each) }))
);
// As the editors in @grafana/ui register them: each with the function that takes its value over.
const PROCESS = {
  displayName: grafana.displayNameOverrideProcessor, unit: grafana.unitOverrideProcessor,
  min: grafana.numberOverrideProcessor, max: grafana.numberOverrideProcessor, decimals: grafana.numberOverrideProcessor,
  thresholds: grafana.thresholdsOverrideProcessor, mappings: grafana.valueMappingsOverrideProcessor,
  noValue: grafana.stringOverrideProcessor, links: grafana.dataLinksOverrideProcessor,
  color: grafana.identityOverrideProcessor, filterable: grafana.booleanOverrideProcessor,
};
function registry(custom) {
  const standard = Object.entries(PROCESS).map(([id, process]) => ({ id, path: id, name: id, process, isCustom: false }));
  const own = custom.map((id) => ({ id: `custom.${id}`, path: id, name: id, process: grafana.identityOverrideProcessor, isCustom: true }));
  return new grafana.Registry(() => [...standard, ...own].map((each) => ({ ...each, shouldApply: () => true, getItemsCount: () => 0 })));
}
const units = new Set(grafana.getValueFormats().flatMap(function ids(each) {
  return each.submenu ? each.submenu.flatMap(ids) : [each.value];
}));

function legend(format, labels) {
  if (!format || format === '__auto') {
    const rest = Object.entries(labels).filter(([name]) => name !== '__name__').map(([name, value]) => `${name}="${value}"`);
    return `${labels.__name__ ?? ''}{${rest.join(', ')}}`;
  }
  return format.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, name) => labels[name] ?? '');
}

// Frames as Grafana's Prometheus data source makes them.
function frames(panel, answers) {
  const tables = panel.targets.filter((each) => each.format === 'table').length;
  return panel.targets.flatMap((target) => {
    const result = answers.find((each) => each.refId === target.refId)?.result ?? [];
    const points = (series) => (series.values ?? [series.value]).map(([time, value]) => [time * 1000, Number(value)]);
    if (target.format === 'table') {
      if (!result.length) {
        return [];
      }
      const names = [...new Set(result.flatMap((each) => Object.keys(each.metric)))].sort();
      const rows = result.flatMap((series) => points(series).map((point) => [series.metric, ...point]));
      return [{
        refId: target.refId, length: rows.length, meta: { preferredVisualisationType: 'table' },
        fields: [
          { name: 'Time', type: 'time', config: {}, values: rows.map(([, time]) => time) },
          ...names.map((name) => ({ name, type: 'string', config: { filterable: true }, values: rows.map(([labels]) => labels[name] ?? '') })),
          { name: tables > 1 ? `Value #${target.refId}` : 'Value', type: 'number', config: {}, values: rows.map(([, , value]) => value) },
        ],
      }];
    }
    return result.map((series) => {
      const name = legend(target.legendFormat, series.metric);
      return {
        refId: target.refId, name, length: points(series).length,
        fields: [
          { name: 'Time', type: 'time', config: {}, values: points(series).map(([time]) => time) },
          { name: 'Value', type: 'number', labels: series.metric, config: { displayNameFromDS: name }, values: points(series).map(([, value]) => value) },
        ],
      };
    });
  });
}

// Names that the transformations ask for and that no column has at that point.
async function transformed(panel, data) {
  const missing = [];
  let found = data;
  for (const each of panel.transformations ?? []) {
    const columns = new Set(found.flatMap((frame) => frame.fields.map((field) => grafana.getFieldDisplayName(field, frame, found))));
    const asked = [
      ...(each.options.include?.names ?? []), ...Object.keys(each.options.excludeByName ?? {}),
      ...Object.keys(each.options.renameByName ?? {}), ...Object.keys(each.options.indexByName ?? {}),
    ];
    missing.push(...asked.filter((name) => !columns.has(name)));
    found = await lastValueFrom(grafana.transformDataFrame([each], found));
  }
  return [found, [...new Set(missing)]];
}

function unknown(panel) {
  const said = [];
  const { defaults, overrides } = panel.fieldConfig;
  const properties = [...Object.entries(defaults).map(([id, value]) => ({ id, value })), ...overrides.flatMap((each) => each.properties)];
  for (const { id, value } of properties) {
    if (id === 'unit' && !units.has(value) && !/^(suffix|prefix|currency|time|si|count|bool):?/.test(value)) {
      said.push(`unit ${value}`);
    }
    if (id === 'color' && !grafana.fieldColorModeRegistry.getIfExists(value.mode)) {
      said.push(`color mode ${value.mode}`);
    }
    if (id !== 'custom' && !id.startsWith('custom.') && !PROCESS[id]) {
      said.push(`property ${id}`);
    }
  }
  for (const each of panel.transformations ?? []) {
    if (!grafana.standardTransformersRegistry.getIfExists(each.id)) {
      said.push(`transformation ${each.id}`);
    }
  }
  for (const each of overrides) {
    if (!grafana.fieldMatchers.getIfExists(each.matcher.id)) {
      said.push(`matcher ${each.matcher.id}`);
    }
  }
  const calcs = [...(panel.options?.reduceOptions?.calcs ?? []), ...(panel.options?.legend?.calcs ?? [])];
  said.push(...calcs.filter((id) => !grafana.fieldReducers.getIfExists(id)).map((id) => `calculation ${id}`));
  return said;
}

async function shown({ name, panel, answers }) {
  const [data, missing] = await transformed(panel, frames(panel, answers));
  const idle = panel.fieldConfig.overrides.filter(
    ({ matcher }) => !data.some((frame) => frame.fields.some((field) => grafana.fieldMatchers.get(matcher.id).get(matcher.options)(field, frame, data)))
  );
  const custom = [...Object.keys(panel.fieldConfig.defaults.custom ?? {}), 'cellOptions', 'width'];
  const drawn = grafana.applyFieldOverrides({
    data, fieldConfig: panel.fieldConfig, fieldConfigRegistry: registry([...new Set(custom)]), theme: grafana.createTheme(),
    timeZone: 'utc', replaceVariables: (text) => text,
  });
  return {
    name, missing, unknown: unknown(panel), idle: idle.map((each) => each.matcher.options),
    frames: drawn.map((frame) => frame.fields.map((field) => ({
      name: grafana.getFieldDisplayName(field, frame, drawn),
      type: field.type,
      unit: field.config.unit ?? '',
      texts: Array.from(field.values).slice(-50).map((value) => grafana.formattedValueToString(field.display(value))),
      colors: [...new Set(Array.from(field.values).slice(-50).map((value) => field.display(value).color ?? ''))],
      links: (field.config.links ?? []).map((link) => link.url),
    }))),
  };
}

(async () => {
  const given = JSON.parse(fs.readFileSync(0, 'utf8'));
  const found = [];
  for (const each of given) {
    found.push(await shown(each).catch((error) => ({ name: each.name, error: String(error.stack) })));
  }
  console.log(JSON.stringify(found));
})();
