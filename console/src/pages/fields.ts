type Value = string | number | boolean | null;

/** The fields of a group, with the names that the API has: doors.front_left. */
export function flatten(group: unknown, prefix = ''): [string, Value][] {
  return Object.entries((group ?? {}) as Record<string, unknown>).flatMap(([name, value]): [string, Value][] => {
    const path = prefix + name;
    if (Array.isArray(value)) return [[path, value.length ? value.join(', ') : '–']];
    if (value !== null && typeof value === 'object') return flatten(value, `${path}.`);
    return [[path, value as Value]];
  });
}
