package vehicles

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/telematics"
)

// part is an object of a fleet file while it is read. What is wrong with it is
// collected, so that one reading finds everything.
type part struct {
	place    string
	number   int64                      // its id; zero: not a number
	known    bool                       // it is on record: what it does not say stays as it is
	fields   map[string]json.RawMessage // not read yet
	problems *[]error
}

func newPart(place string, raw json.RawMessage, problems *[]error) *part {
	p := &part{place: place, problems: problems}
	if err := json.Unmarshal(raw, &p.fields); err != nil || p.fields == nil {
		p.problem("", "want an object")
		p.problems = new([]error) // its missing fields are no further errors
	}
	return p
}

// over returns the part to be read, over what is on record.
func (p *part) over(known bool, problems *[]error) *part {
	fresh := &part{place: p.place, number: p.number, known: known, fields: maps.Clone(p.fields), problems: problems}
	if p.fields == nil {
		fresh.problems = p.problems
	}
	return fresh
}

// problem is what is wrong with a field.
type problem struct {
	place, key, message string
}

func (p problem) Error() string {
	place := cmp.Or(strings.Trim(p.place+"."+p.key, "."), "the file")
	return place + ": " + p.message
}

func (p *part) problem(key, format string, args ...any) {
	*p.problems = append(*p.problems, problem{p.place, key, fmt.Sprintf(format, args...)})
}

// end reports the keys that were not read.
func (p *part) end() {
	for _, key := range slices.Sorted(maps.Keys(p.fields)) {
		p.problem(key, "unknown key")
	}
}

// presence is how a field is given.
type presence int

const (
	absent presence = iota // it stays as it is on record
	null                   // it is cleared
	given
)

// take reads a field.
func take[T any](p *part, key, want string) (v T, is presence) {
	raw, ok := p.fields[key]
	delete(p.fields, key)
	switch {
	case !ok:
		return v, absent
	case string(raw) == "null":
		return v, null
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		p.problem(key, "%.40s: want %s", raw, want)
		return *new(T), given
	}
	return v, given
}

// optional reads a field, and returns the value on record where it is absent, and the cleared one
// where it is null. It reports whether it has read a value.
func optional[T any](p *part, key, want string, recorded, cleared T) (T, bool) {
	v, is := take[T](p, key, want)
	switch is {
	case absent:
		return recorded, false
	case null:
		return cleared, false
	}
	return v, true
}

// needed reads a field that each object has. It returns the value on record where it is absent, and
// reports whether it has read a value.
func needed[T any](p *part, key, want string, recorded T) (T, bool) {
	v, is := take[T](p, key, want)
	switch {
	case is == given:
		return v, true
	case is == null && p.known:
		p.problem(key, "cannot be cleared")
	case !p.known:
		p.problem(key, "missing")
	}
	return recorded, false
}

// parts reads a list of objects.
func (p *part) parts(key string) []*part {
	raws, _ := take[[]json.RawMessage](p, key, "a list of objects")
	list := make([]*part, len(raws))
	for i, raw := range raws {
		list[i] = newPart(fmt.Sprintf("%s[%d]", key, i), raw, p.problems)
		list[i].number = peek[int64](list[i], "id")
	}
	return list
}

// maxID is the highest number that the API takes: programs that read JSON in JavaScript know no
// higher one exactly.
const maxID = 1<<53 - 1

// id reads the number of the object, or, given the one on record, that of another object.
func (p *part) id(key string, recorded int64) int64 {
	id, read := needed(p, key, "a whole number", recorded)
	if read && (id < 1 || id > maxID) {
		p.problem(key, "%d: want 1 to %d", id, maxID)
	}
	return id
}

// maxText bounds the length of a text in bytes: a mistake, not a name, is longer.
const maxText = 1024

// clean returns a text as it is stored.
func (p *part) clean(key, s string) string {
	switch {
	case len(s) > maxText || !pg.Searchable(s):
		p.problem(key, "longer than %d bytes, or not clean UTF-8", maxText)
		return s
	case strings.ContainsRune(s, utf8.RuneError):
		p.problem(key, "%q: a character was lost (U+FFFD) when this text was converted from another encoding", s)
	}
	return telematics.Clean(s)
}

func (p *part) optionalText(key, recorded string) string {
	s, read := optional(p, key, "a string", recorded, "")
	if !read {
		return s
	}
	return p.clean(key, s)
}

func (p *part) text(key, recorded string) string {
	s, read := needed(p, key, "a string", recorded)
	if !read {
		return s
	}
	if s = p.clean(key, s); s == "" {
		p.problem(key, "empty")
	}
	return s
}

func (p *part) texts(key string, recorded []string) []string {
	list, read := optional(p, key, "a list of strings", recorded, nil)
	printable := make([]string, len(list)) // never nil
	copy(printable, list)
	if !read {
		return printable
	}
	for i, s := range list {
		place := fmt.Sprintf("%s[%d]", key, i)
		if printable[i] = p.clean(place, s); printable[i] == "" {
			p.problem(place, "empty")
		}
	}
	return printable
}

func (p *part) decimal(key string, low, high, recorded float64) float64 {
	n, read := needed(p, key, "a number", recorded)
	if read && (n < low || n > high) {
		p.problem(key, "%g: want %g to %g", n, low, high)
	}
	return n
}

// exact reads a number as it is written: what is money never floats.
func exact[T any](p *part, key string, recorded, cleared T, parse func(text string) (T, error)) T {
	raw, is := take[json.RawMessage](p, key, "")
	switch is {
	case absent:
		return recorded
	case null:
		return cleared
	}
	n, err := parse(string(raw))
	if err != nil {
		p.problem(key, "%.40s: %v", raw, err)
	}
	return n
}

// amount reads an amount of money in a currency; nil: none. A currency that was reported before is
// empty, and takes any.
func (p *part) amount(key string, c rental.Currency, recorded *rental.Minor) *rental.Minor {
	return exact(p, key, recorded, nil, func(text string) (*rental.Minor, error) {
		if c == "" {
			return new(rental.Minor), nil
		}
		m, err := c.Parse(text)
		return &m, err
	})
}

func (p *part) tax(key string, recorded rental.TaxRate) rental.TaxRate {
	return exact(p, key, recorded, 0, rental.ParseTaxPercent)
}

// currency returns none for what it complains of.
func (p *part) currency(key string, recorded rental.Currency) rental.Currency {
	code, read := optional(p, key, "a string", string(recorded), string(rental.DefaultCurrency))
	if !read {
		return rental.Currency(code)
	}
	c, err := rental.ParseCurrency(code)
	if err != nil {
		p.problem(key, "%.10q: want an ISO 4217 code such as EUR", code)
	}
	return c
}

// year reads the year of a model; zero: not said.
func (p *part) year(key string, recorded int) int {
	const first, last = 1886, 2100 // the first motor car; a slip of the finger
	year, read := optional(p, key, "a whole number", recorded, 0)
	if read && year != 0 && (year < first || year > last) {
		p.problem(key, "%d: want %d to %d", year, first, last)
	}
	return year
}

// oneOf reads a word of a closed list. With no cleared value it is needed.
func oneOf[T ~string](p *part, key string, known []T, recorded, cleared T) T {
	word, is := take[T](p, key, "a string")
	switch {
	case is == given && !slices.Contains(known, word):
		p.problem(key, "%q: want one of %v", word, known)
	case is == given:
	case is == absent && (p.known || recorded != ""):
		return recorded
	case cleared == "" && p.known:
		p.problem(key, "cannot be cleared; want one of %v", known)
	case cleared == "":
		p.problem(key, "missing; want one of %v", known)
	default:
		return cleared
	}
	return word
}
