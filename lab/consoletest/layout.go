package consoletest

import "strings"

// outside lists what a person with this window cannot reach: what lies outside of it, and in
// nothing that scrolls.
const outside = `(() => {
	const clipped = (e) => {
		for (let p = e.parentElement; p; p = p.parentElement)
			if (['auto', 'scroll'].includes(getComputedStyle(p).overflowX)) return true;
		return false;
	};
	return [...document.querySelectorAll('a[href], button, input, select, textarea, summary, dialog[open], :popover-open')].filter((e) => {
		const { left, right, width } = e.getBoundingClientRect();
		return e.checkVisibility({ visibilityProperty: true }) && width > 1 && (left < 0 || right > innerWidth) && !clipped(e);
	}).map((e) => e.cloneNode(true).outerHTML.slice(0, 200));
})()`

// tooWide lists what makes the page wider than the window.
const tooWide = `document.scrollingElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('body *')]
	.filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.cloneNode(false).outerHTML.slice(0, 150)).slice(0, 20)`

// Fits waits until the page does not scroll sideways, and has nothing that cannot be reached.
func (p *Page) Fits(what string) {
	p.Helper()
	p.wait(what+" fits its window", func() string {
		wide, err := evaluate[[]string](p, tooWide)
		if err != nil || len(wide) > 0 {
			return because(false, "it scrolls sideways, by one of\n  "+strings.Join(wide, "\n  "), err)
		}
		lost, err := evaluate[[]string](p, outside)
		return because(len(lost) == 0, "these are out of reach:\n  "+strings.Join(lost, "\n  "), err)
	})
}

// focus says what has the focus, and whether a person sees that: it has an outline, and nothing
// covers all of it.
const focus = `(() => {
	const e = document.activeElement, { outlineStyle, outlineWidth } = getComputedStyle(e);
	const outlined = e.matches(':focus-visible') && outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1;
	const { left, top, width, height } = e.getBoundingClientRect();
	const covered = [[0.5, 0.5], [0.05, 0.1], [0.95, 0.9]].every(([x, y]) => {
		const above = document.elementFromPoint(left + x * width, top + y * height);
		return above && !e.contains(above) && !above.contains(e);
	});
	return { Is: e.cloneNode(true).outerHTML.slice(0, 200), Seen: e === document.body || (outlined && !covered) };
})()`

// mostTabs is how often a person may have to press Tab.
const mostTabs = 80

// TabTo presses Tab until something has the focus, which must be visible all the way.
func (p *Page) TabTo(selector string) {
	p.Helper()
	p.See(selector)
	for range mostTabs {
		p.Press("Tab")
		at := Value[struct {
			Is   string
			Seen bool
		}](p, focus)
		if !at.Seen {
			p.Fatalf("the focus is not visible on %s", at.Is)
		}
		if Value[bool](p, "document.activeElement.matches("+quote(selector)+")") {
			return
		}
	}
	p.Fatalf("%d times Tab do not lead to %s", mostTabs, selector)
}
