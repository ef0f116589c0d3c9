import { expect, it } from 'vitest';
import { csv } from './csv';

it('quotes what needs it, and lets nothing compute', () => {
  expect(csv([['a', 1, null, true], ['x,y', 'say "no"', '=1+1', -5]])).toBe('\ufeffa,1,,true\r\n"x,y","say ""no""",\'=1+1,-5\r\n');
});

it.each([
  ['+49 89', "'+49 89"],
  ['\t=1', "'\t=1"],
  [' =1', "' =1"],
  ['＝1', "'＝1"],
  ['a;=1+1', "a;'=1+1"],
  ['a; @x;-1', "a;' @x;'-1"],
  ['a;"=1', `"a;'""=1"`],
  ['a\n=1', `"a\n'=1"`],
  ['\u202e=1', "'=1"],
  [';\u200b=1', ";'=1"],
  ['a=b;c', 'a=b;c'],
])('lets no spreadsheet compute %j', (text, written) => {
  expect(csv([[text]])).toBe(`\ufeff${written}\r\n`);
});
