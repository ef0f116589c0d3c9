import { keep } from './storage';

/** Whether keys belong to where a person types or chooses, not to the page. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input:not([type=checkbox], [type=radio]), textarea, select, dialog[open]') !== null;
}

/** Whether letters and signs are keys of the page: those who speak to their computer turn them off (WCAG 2.1.4). */
export const hasLetters = () => localStorage.getItem('letters') !== 'off';
export const useLetters = (on: boolean) => keep(localStorage, 'letters', on ? null : 'off');

/** Whether a key is one of the page's: no field is typed into, and neither the browser nor a map has a use for it. */
export function isForPage(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return false;
  return event.key.length > 1 || hasLetters();
}

/** Lets an event have no effect. */
export function stop(event: Event) {
  event.preventDefault();
  event.stopPropagation();
}

/**
 * Stops Enter and Space that are held: a press that opens something must not confirm it, too. For
 * keydown, before anything else sees it.
 */
export function stopHeld(event: KeyboardEvent) {
  const isText = event.target instanceof Element && event.target.matches('input:not([type=checkbox], [type=radio]), textarea');
  if (!event.repeat || !(event.key === 'Enter' || (event.key === ' ' && !isText))) return;
  stop(event);
}
