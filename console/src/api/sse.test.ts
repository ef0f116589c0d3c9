import { expect, it } from 'vitest';
import { EventReader } from './sse';

const stream =
  'retry: 3000\nid: 1-0\n\nid: 2-0\nevent: presence\ndata: {"a":"b: c"}\n\n: ping\nid: 3-0\n\nevent: halt\ndata: 1\ndata: 2\n\n';

it('reads events, however they are cut into pieces', () => {
  const expected = [
    { event: 'presence', data: '{"a":"b: c"}' },
    { event: 'halt', data: '1\n2' },
  ];
  for (const size of [1, 2, 7, 1000]) {
    const reader = new EventReader();
    const events = [];
    for (let at = 0; at < stream.length; at += size) events.push(...reader.read(stream.slice(at, at + size)));
    expect(events).toEqual(expected);
    expect(reader.lastID).toBe('3-0');
  }
});

it('keeps the position of what it has read as a whole alone', () => {
  const reader = new EventReader();
  reader.read('id: 1-0\nevent: a\ndata: x\n\nid: 2-0\nevent: b\ndata: y\n');
  expect(reader.lastID).toBe('1-0');
});

it('reads lines that end with CR LF', () => {
  expect(new EventReader().read('event: a\r\ndata: x\r\n\r\n')).toEqual([{ event: 'a', data: 'x' }]);
});
