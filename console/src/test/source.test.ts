// Rules of the sources of the pages.
import { parse, type AST } from 'svelte/compiler';
import { expect, it } from 'vitest';

const sources = import.meta.glob<string>('../**/*.svelte', { query: '?raw', import: 'default', eager: true });

type Node = { type: string; start: number; end: number } & Record<string, unknown>;

function* nodes(of: unknown): Generator<Node> {
  if (Array.isArray(of)) for (const member of of) yield* nodes(member);
  else if (typeof of === 'object' && of !== null) {
    if ('type' in of) yield of as Node;
    for (const [name, member] of Object.entries(of)) if (name !== 'metadata') yield* nodes(member);
  }
}

/** What is against a rule, as "file: source". */
function breaches(breaks: (node: Node, text: (node: Node) => string) => boolean, all = sources): string[] {
  return Object.entries(all).flatMap(([file, source]) => {
    const text = (node: Node) => source.slice(node.start, node.end);
    const found = [...nodes(parse(source, { modern: true }).fragment)].filter((node) => breaks(node, text));
    return found.map((node) => `${file}: ${text(node).split('\n')[0]}`);
  });
}

// Without a key, and by its index, a row is the one of its place. Names, times and reasons may be
// the same of two rows: Svelte stops at that, and the page shows what was before.
const ids = /^(\w+\.)?(id|serial|vehicle|[a-z]+_id)$/;
const keyedByText = (node: Node, text: (node: Node) => string) => {
  const { key, index } = node as unknown as AST.EachBlock;
  return node.type === 'EachBlock' && !!key && !ids.test(text(key as unknown as Node)) && text(key as unknown as Node) !== index;
};

it('keys of lists are ids or counters', () => {
  expect(Object.keys(sources).length).toBeGreaterThan(40);
  expect(breaches(keyedByText)).toEqual([]);
  const wrong = [
    '{#each a as b (b.plate)}{/each}',
    '{#each a as b (b.at + b.kind)}{/each}',
    '{#each a as b (`${b.id}`)}{/each}',
    '{#each a as [b, c], i (b)}{/each}',
  ];
  const right = ['{#each a as b}{/each}', '{#each a as b (b.id)}{/each}', '{#each a as b, i (i)}{/each}', '{#each a as id (id)}{/each}'];
  expect(breaches(keyedByText, Object.fromEntries([...wrong, ...right].entries()))).toHaveLength(wrong.length);
});

// A dialog gives the focus to what comes first in it, which is how it is left. Enter, pressed once too often, must not confirm.
it('no button takes the focus when a dialog opens', () => {
  const focused = (node: Node) =>
    node.type === 'RegularElement' &&
    node.name === 'button' &&
    (node as unknown as AST.RegularElement).attributes.some((a) => a.type === 'Attribute' && a.name === 'autofocus');
  expect(breaches(focused)).toEqual([]);
  expect(breaches(focused, { a: '<button autofocus onclick={send}>Unlock</button>', b: '<button>Cancel</button>' })).toHaveLength(1);
});
