/** Whether keys belong to where a person types or chooses, not to the page. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input:not([type=checkbox], [type=radio]), textarea, select, dialog[open]') !== null;
}

/** Whether a key is one of the page's: no field is typed into, and neither the browser nor a map has a use for it. */
export function isForPage(event: KeyboardEvent): boolean {
  return !event.defaultPrevented && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target);
}

/**
 * Stops Enter and Space that are held: a press that opens something must not confirm it, too. For
 * keydown, before anything else sees it.
 */
export function stopHeld(event: KeyboardEvent) {
  const isText = event.target instanceof Element && event.target.matches('input:not([type=checkbox], [type=radio]), textarea');
  if (!event.repeat || !(event.key === 'Enter' || (event.key === ' ' && !isText))) return;
  event.preventDefault();
  event.stopPropagation();
}
