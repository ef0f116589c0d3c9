package httpapi

import "testing"

func FuzzACursorIsTakenOnlyInTheFormInWhichItWasGiven(f *testing.F) {
	p := page{list: "activity"}
	f.Add(p.cursor(1))
	f.Add(p.cursor(1 << 62))
	f.Add(page{list: "vehicles"}.cursor(1))
	f.Add("")
	f.Add("YWN0aXZpdHk6LTE")
	f.Fuzz(func(t *testing.T, text string) {
		position, ok := p.parseCursor(text)
		if ok && (position <= 0 || p.cursor(position) != text) {
			t.Errorf("%q read as %d, which is written %q", text, position, p.cursor(position))
		}
	})
}
