package httpapi

import (
	"strconv"
	"testing"

	"github.com/google/uuid"
)

func FuzzCursor_IsAcceptedOnlyAsIssued(f *testing.F) {
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
			t.Errorf("%q was accepted as %d, but is not how that is written", text, position)
		}
		if id, ok := byIDs.parseIDCursor(text); ok && byIDs.cursor(id.String()) != text {
			t.Errorf("%q was accepted as %s, but is not how that is written", text, id)
		}
	})
}
