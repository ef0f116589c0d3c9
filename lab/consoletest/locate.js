// Finds what a person would see by a selector, and the text in it: the first that is visible, one with just that text
// before others. To be clicked it must be enabled, at rest, and not covered. A click that hits something else, since the
// page moved before the button of the mouse was pressed or released, has no effect and leaves missed set, as one does
// that the page itself leaves without effect.
async (selector, text, toClick) => {
  const say = (e) => (e.innerText ?? e.textContent ?? '').replace(/\s+/g, ' ').trim();
  const isVisible = (e) => {
    const { width, height } = e.getBoundingClientRect();
    return e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && width + height > 0;
  };
  const name = (e) => e.cloneNode(false).outerHTML.replace(/><\/.*/, '>').slice(0, 150);
  const all = [...document.querySelectorAll(selector)];
  if (all.length === 0) return { why: 'there is none' };
  const fitting = all.filter((e) => say(e).includes(text)).sort((a, b) => Number(say(b) === text) - Number(say(a) === text));
  if (fitting.length === 0) return { why: `it says ${all.slice(0, 5).map((e) => JSON.stringify(say(e).slice(0, 300))).join(', ')}` };
  const e = fitting.find(isVisible);
  if (!e) return { why: `it is not visible: ${name(fitting[0])}` };
  const found = { visible: true, text: say(e) };
  if (!toClick) return found;
  if (e.matches(':disabled')) return { ...found, why: `it is off: ${name(e)}` };
  const middle = () => {
    const box = e.getClientRects()[0] ?? e.getBoundingClientRect();
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  };
  const at = ({ x, y }) => document.elementFromPoint(x, y);
  const isHit = (hit) => hit && (e.contains(hit) || hit.closest('label')?.control === e);
  if (!isHit(at(middle()))) e.scrollIntoView({ block: 'center', inline: 'center' });
  const before = middle();
  await new Promise((resolve) => setTimeout(resolve, 30));
  const now = middle();
  if (before.x !== now.x || before.y !== now.y) return { ...found, why: 'it moves' };
  const hit = at(now);
  if (!isHit(hit)) return { ...found, why: hit ? `${name(hit)} lies over it` : 'it is outside of the window' };
  window.missed = true;
  const guard = (event) => {
    if (event.type === 'pointerdown' || (event.type === 'click' && !window.missed)) window.missed = !isHit(event.target);
    if (!window.missed) return;
    event.stopImmediatePropagation();
    event.preventDefault();
  };
  for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click']) {
    addEventListener(type, guard, { capture: true, once: true });
  }
  addEventListener('click', (event) => (window.missed ||= event.defaultPrevented), { once: true });
  return { ...found, ...now, clickable: true };
};
