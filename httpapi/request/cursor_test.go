package request

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/uuid"
)

func FuzzCursor_IsAcceptedOnlyAsIssued(f *testing.F) {
	list := func(name string) *Page { return &Page{list: name} }
	f.Add(list("activity").cursor("1"))
	f.Add(list("activity").cursor("4611686018427387904"))
	f.Add(list("activity").cursor("01"))
	f.Add(list("vehicles").cursor("1"))
	f.Add(list("commands" + ByID).cursor(uuid.NewString()))
	f.Add(list("commands" + ByID).cursor("7"))
	f.Add(list("vehicles" + ByDistance).cursor("120.42"))
	f.Add("")
	f.Add("YWN0aXZpdHk6LTE")
	f.Fuzz(func(t *testing.T, text string) {
		p := list("activity")
		if p.setCursor(text) && (p.before <= 0 || p.cursor(strconv.FormatInt(p.before, 10)) != text) {
			t.Errorf("%q was accepted as %d, but is not how that is written", text, p.before)
		}
		p = list("vehicles" + ByDistance)
		if p.setCursor(text) && (p.before < 0 || p.metres < 0 || p.cursor(fmt.Sprintf("%d.%d", p.metres, p.before)) != text) {
			t.Errorf("%q was accepted as %d m and %d, but is not how they are written", text, p.metres, p.before)
		}
		p = list("commands" + ByID)
		if p.setCursor(text) && p.cursor(p.beforeID.String()) != text {
			t.Errorf("%q was accepted as %s, but is not how that is written", text, p.beforeID)
		}
	})
}
