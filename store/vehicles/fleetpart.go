package vehicles

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/telematics"
)

// part is an object of a fleet file while it is read. What is wrong with it is
// collected, so that one reading finds everything.
type part struct {
	place    string
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

func (p *part) problem(key, format string, args ...any) {
	place := strings.Trim(p.place+"."+key, ".")
	if place == "" {
		place = "the file"
	}
	*p.problems = append(*p.problems, fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...)))
}

// end reports the keys that were not read.
func (p *part) end() {
	for _, key := range slices.Sorted(maps.Keys(p.fields)) {
		p.problem(key, "unknown key")
	}
}

// take reads a field, and reports whether there was one. Null counts as absent.
func take[T any](p *part, key, want string) (v T, there bool) {
	raw, ok := p.fields[key]
	delete(p.fields, key)
	if !ok || string(raw) == "null" {
		return v, false
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		p.problem(key, "%.40s: want %s", raw, want)
		return *new(T), true
	}
	return v, true
}

// parts reads a list of objects.
func (p *part) parts(key string) []*part {
	raws, _ := take[[]json.RawMessage](p, key, "a list of objects")
	list := make([]*part, len(raws))
	for i, raw := range raws {
		list[i] = newPart(fmt.Sprintf("%s[%d]", key, i), raw, p.problems)
	}
	return list
}

func (p *part) id(key string) int64 {
	id, there := take[int64](p, key, "a whole number")
	switch {
	case !there:
		p.problem(key, "missing")
	case id < 1:
		p.problem(key, "%d: want a positive number", id)
	}
	return id
}

// maxText bounds the length of a text in bytes: a mistake, not a name, is longer.
const maxText = 1024

func (p *part) optionalText(key string) string {
	s, _ := take[string](p, key, "a string")
	if len(s) > maxText || !pg.Searchable(s) {
		p.problem(key, "longer than %d bytes, or not clean UTF-8", maxText)
		return s
	}
	return telematics.Printable(s)
}

func (p *part) text(key string) string {
	if _, ok := p.fields[key]; !ok {
		p.problem(key, "missing")
		return ""
	}
	s := p.optionalText(key)
	if strings.TrimSpace(s) == "" {
		p.problem(key, "empty")
	}
	return s
}

func (p *part) texts(key string) []string {
	list, _ := take[[]string](p, key, "a list of strings")
	for i, s := range list {
		if s == "" || len(s) > maxText || !pg.Searchable(s) {
			p.problem(fmt.Sprintf("%s[%d]", key, i), "empty, longer than %d bytes, or not clean UTF-8", maxText)
		}
	}
	printable := make([]string, len(list)) // never nil
	for i, s := range list {
		printable[i] = telematics.Printable(s)
	}
	return printable
}

func (p *part) number(key string, low, high float64) float64 {
	n, there := take[float64](p, key, "a number")
	switch {
	case !there:
		p.problem(key, "missing")
	case n < low || n > high:
		p.problem(key, "%g: want %g to %g", n, low, high)
	}
	return n
}

// exact reads a number as it is written: what is money never floats. It reports whether there is
// one.
func exact[T any](p *part, key string, parse func(text string) (T, error)) (n T, there bool) {
	raw, there := take[json.RawMessage](p, key, "")
	if !there {
		return n, false
	}
	n, err := parse(string(raw))
	if err != nil {
		p.problem(key, "%.40s: %v", raw, err)
	}
	return n, true
}

// amount reads an amount of money in a currency; none, where it was complained of before, takes
// any.
func (p *part) amount(key string, c rental.Currency) (rental.Minor, bool) {
	return exact(p, key, func(text string) (rental.Minor, error) {
		if c == "" {
			return 0, nil
		}
		return c.Parse(text)
	})
}

func (p *part) tax(key string) rental.TaxRate {
	tax, _ := exact(p, key, rental.ParseTaxPercent)
	return tax
}

// currency returns none for what it complains of.
func (p *part) currency(key string) rental.Currency {
	code, there := take[string](p, key, "a string")
	if !there {
		return rental.DefaultCurrency
	}
	c, err := rental.ParseCurrency(code)
	if err != nil {
		p.problem(key, "%.10q: want an ISO 4217 code such as EUR", code)
	}
	return c
}

// year reads the year of a model; zero: not said.
func (p *part) year(key string) int {
	const first, last = 1886, 2100 // the first motor car; a slip of the finger
	year, _ := take[int](p, key, "a whole number")
	if year != 0 && (year < first || year > last) {
		p.problem(key, "%d: want %d to %d", year, first, last)
	}
	return year
}

// oneOf reads a word of a closed list. Without a default it is needed.
func oneOf[T ~string](p *part, key string, known []T, missing T) T {
	word, there := take[T](p, key, "a string")
	switch {
	case !there && missing == "":
		p.problem(key, "missing; want one of %v", known)
	case !there:
		return missing
	case !slices.Contains(known, word):
		p.problem(key, "%q: want one of %v", word, known)
	}
	return word
}
