package sandbox

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// params are the parameters of a request. Parameters that an operation did not read are unknown.
type params struct {
	values url.Values
	read   map[string]bool
	failed *failure // the first one
}

func newParams(values url.Values) *params { return &params{values: values, read: map[string]bool{}} }

func (p *params) has(name string) bool {
	p.read[name] = true
	return p.values.Has(name)
}

// text returns a parameter, empty where it is absent.
func (p *params) text(name string) string {
	p.has(name)
	return p.values.Get(name)
}

// needed returns a parameter that must be there.
func (p *params) needed(name string) string {
	value := p.text(name)
	if value == "" {
		p.fail(refused(parameterMissing, name, "Missing required param: %s.", name))
	}
	return value
}

// whole returns a positive number; zero: absent.
func (p *params) whole(name string) int64 {
	if !p.has(name) {
		return 0
	}
	n, err := strconv.ParseInt(p.values.Get(name), 10, 64)
	if err != nil || n < 1 {
		p.fail(refused(parameterInvalid, name, "Invalid positive integer"))
	}
	return n
}

// yes returns a boolean, false where it is absent.
func (p *params) yes(name string) bool {
	value := p.text(name)
	if value != "" && value != "true" && value != "false" {
		p.fail(refused("parameter_invalid_boolean", name, "Invalid boolean: %s", value))
	}
	return value == "true"
}

// oneOf returns a word, the first one where it is absent.
func (p *params) oneOf(name string, words ...string) string {
	value := p.text(name)
	if value == "" {
		return words[0]
	}
	if !slices.Contains(words, value) {
		p.fail(refused("parameter_invalid", name, "Invalid %s: must be one of %s", name, strings.Join(words, ", ")))
	}
	return value
}

// list returns name[0], name[1] …, or name[].
func (p *params) list(name string) []string {
	var list []string
	for key, values := range p.values {
		if inner, ok := member(key, name); ok {
			if _, err := strconv.Atoi(inner); err == nil || inner == "" {
				p.read[key] = true
				list = append(list, values...)
			}
		}
	}
	slices.Sort(list)
	return list
}

// object returns the members of name[…]; nil: there are none.
func (p *params) object(name string) map[string]string {
	var members map[string]string
	for key, values := range p.values {
		if inner, ok := member(key, name); ok {
			p.read[key] = true
			if members == nil {
				members = map[string]string{}
			}
			members[inner] = values[0]
		}
	}
	return members
}

func member(key, name string) (string, bool) {
	inner, ok := strings.CutPrefix(key, name+"[")
	inner, closed := strings.CutSuffix(inner, "]")
	return inner, ok && closed
}

func (p *params) fail(f *failure) {
	if p.failed == nil {
		f.fleeting = true // validation comes before anything is begun
		p.failed = f
	}
}

// check returns what is wrong with the parameters; nil: nothing.
func (p *params) check() *failure {
	for key := range p.values {
		if !p.read[key] {
			p.fail(refused(parameterUnknown, key, "Received unknown parameter: %s", key))
		}
	}
	return p.failed
}

// page answers a list, the newest first, from behind an object on.
func page[T any](r *request, url string, all []T, show func(T) (string, view)) (view, *failure) {
	const usual, most = 10, 100
	limit, after := r.params.whole("limit"), r.params.text("starting_after")
	limit = cmp.Or(limit, usual)
	if limit > most {
		r.params.fail(refused(parameterInvalid, "limit", "limit must be at most %d", most))
	}
	if f := r.params.check(); f != nil {
		return nil, f
	}
	data, more, begun := []view{}, false, after == ""
	for _, o := range all {
		id, v := show(o)
		switch {
		case !begun:
			begun = id == after
		case int64(len(data)) == limit:
			more = true
		default:
			data = append(data, v)
		}
	}
	if !begun {
		return nil, missingAt("starting_after", "object", after)
	}
	return view{"object": "list", "url": url, "has_more": more, "data": data}, nil
}
