package httpapi

import (
	"strconv"
	"testing"

	"github.com/google/uuid"
)

func FuzzACursorIsTakenOnlyInTheFormInWhichItWasGiven(f *testing.F) {
	p, byIDs := page{list: "activity"}, page{list: fleetCommands}
	f.Add(p.cursor("1"))
	f.Add(p.cursor("4611686018427387904"))
	f.Add(p.cursor("01"))
	f.Add(page{list: "vehicles"}.cursor("1"))
	f.Add(byIDs.cursor(uuid.NewString()))
	f.Add(byIDs.cursor("7"))
	f.Add("")
	f.Add("YWN0aXZpdHk6LTE")
	f.Fuzz(func(t *testing.T, text string) {
		position, ok := p.parseCursor(text)
		if ok && (position <= 0 || p.cursor(strconv.FormatInt(position, 10)) != text) {
			t.Errorf("%q read as %d", text, position)
		}
		if id, ok := byIDs.parseIDCursor(text); ok && byIDs.cursor(id.String()) != text {
			t.Errorf("%q read as %s", text, id)
		}
	})
}
