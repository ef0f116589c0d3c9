package v1

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"motorpool/telematics"
)

// place is where a report may hold something: a field, or an object of more places.
type place struct {
	path   string
	parse  func(json.RawMessage) (any, error) // of a field; nil: none
	within map[string]*place                  // of an object; nil: none
	index  int                                // in outline
	end    int                                // index after the last place within
}

// outline lists the places of a report in the order in which they are read: the time first,
// the answers last, and each object before what is within.
var outline = func() (places []*place) {
	root := &place{within: map[string]*place{"at": {path: "at"}, "commands": {path: "commands"}}}
	for _, field := range telematics.Fields {
		if field.IsRaw() {
			continue
		}
		within, names := root, strings.Split(string(field), ".")
		for i, name := range names {
			if within.within == nil {
				within.within = map[string]*place{}
			}
			next := within.within[name]
			if next == nil {
				next = &place{path: strings.Join(names[:i+1], ".")}
				within.within[name] = next
			}
			within = next
		}
		within.parse = field.Parser()
	}
	order := slices.Concat([]string{"at"}, telematics.Sections, []string{"commands"})
	var number func(p *place)
	number = func(p *place) {
		p.index = len(places)
		places = append(places, p)
		for _, next := range slices.SortedFunc(maps.Values(p.within), func(a, b *place) int {
			return cmp.Or(cmp.Compare(slices.Index(order, a.path), slices.Index(order, b.path)), cmp.Compare(a.path, b.path))
		}) {
			number(next)
		}
		p.end = len(places)
	}
	number(root)
	return places
}()

var atPlace, commandsPlace = outline[0].within["at"], outline[0].within["commands"]
