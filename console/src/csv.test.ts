import { expect, it } from 'vitest';
import { csv } from './csv';

it('quotes what needs it, and lets nothing compute', () => {
  expect(csv([['a', 1, null, true], ['x,y', 'say "no"', '=1+1', -5]])).toBe('a,1,,true\r\n"x,y","say ""no""",\'=1+1,-5\r\n');
});
