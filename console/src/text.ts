// Controls of terminals and of bidirectional text, and invisible marks; joiners are none. The
// service removes them from what units and fleet files set, but has had such texts before.
const hidden =
  /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** A text without characters that are not seen, or that change the order in which others are shown. */
export const printable = (text: string): string => text.replace(hidden, '');

/** Makes all texts of a value from JSON printable, and returns it. */
export function clean<Value>(value: Value): Value {
  if (typeof value === 'string') return printable(value) as Value;
  if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value)) {
      const key = printable(name);
      if (key !== name) delete (value as Record<string, unknown>)[name];
      (value as Record<string, unknown>)[key] = clean(member);
    }
  }
  return value;
}

/** Words by codes of the API. A code of a later version stands for itself: a tab can be older than the service. */
export const coded = <Words extends object>(words: Words): Words =>
  new Proxy(words, { get: (all, code) => Reflect.get(all, code) ?? (typeof code === 'string' ? code.replaceAll('_', ' ') : undefined) });
