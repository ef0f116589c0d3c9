package v1

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"motorpool/telematics"
)

// scan is one pass through the text of a report: it checks that the text is JSON, and records
// the value at each place of the outline. Scans are pooled, so that decoding allocates only
// what the report keeps.
type scan struct {
	text   bytes.Buffer
	tokens *jsontext.Decoder
	said   []json.RawMessage // values by place; nil: none
	count  int               // of values
}

var scans = sync.Pool{New: func() any {
	return &scan{tokens: jsontext.NewDecoder(eof), said: make([]json.RawMessage, len(outline))}
}}

// newScan reads the whole text. The scan is valid until it is closed, and must be closed. It
// refers to the text, which must not change before.
func newScan(text []byte) (*scan, error) {
	s := scans.Get().(*scan)
	s.begin(text)
	if err := s.whole(text); err != nil {
		s.close()
		return nil, fmt.Errorf("decode report: %w", err)
	}
	return s, nil
}

func (s *scan) begin(text []byte) {
	s.text = *bytes.NewBuffer(text)
	// Of two members with the same name the last one counts, and invalid UTF-8 does not invalidate
	// the rest.
	s.tokens.Reset(&s.text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

var eof = bytes.NewReader(nil)

// close clears the scan and returns it to the pool.
func (s *scan) close() {
	clear(s.said)
	s.count = 0
	s.tokens.Reset(eof)
	s.text = bytes.Buffer{}
	scans.Put(s)
}

func (s *scan) whole(text []byte) error {
	if kind := s.tokens.PeekKind(); kind != '{' && kind != 0 {
		if err := s.tokens.SkipValue(); err != nil {
			return err
		}
		return fmt.Errorf("%v is not a report", kind)
	}
	if err := s.object(text, outline[0]); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the message is empty")
		}
		return err
	}
	switch more, err := s.more(); {
	case more:
		return errors.New("more than one report")
	default:
		return err
	}
}

// more reports whether another token follows.
func (s *scan) more() (bool, error) {
	_, err := s.tokens.ReadToken()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// object records the values within an object.
func (s *scan) object(text []byte, p *place) error {
	if _, err := s.tokens.ReadToken(); err != nil { // {
		return err
	}
	for s.tokens.PeekKind() != '}' {
		name, err := s.tokens.ReadValue()
		if err != nil {
			return err
		}
		next := p.member(name)
		if next == nil { // not known to this version
			if err := s.tokens.SkipValue(); err != nil {
				return err
			}
			continue
		}
		clear(s.said[next.index:next.end]) // an earlier member with the same name
		if next.within != nil && s.tokens.PeekKind() == '{' {
			if err := s.object(text, next); err != nil {
				return err
			}
			continue
		}
		if s.said[next.index], err = s.value(text); err != nil {
			return err
		}
		s.count++
	}
	_, err := s.tokens.ReadToken() // }
	return err
}

// member returns the place of a name within an object; nil: none.
func (p *place) member(name []byte) *place {
	plain := name[1 : len(name)-1]
	if bytes.IndexByte(plain, '\\') >= 0 {
		var err error
		if plain, err = jsontext.AppendUnquote(nil, name); err != nil {
			return nil
		}
	}
	return p.within[string(plain)]
}

// value reads the next value, as a slice of the text: the decoder reuses what it returns.
func (s *scan) value(text []byte) (json.RawMessage, error) {
	value, err := s.tokens.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(s.tokens.InputOffset())
	return text[end-len(value) : end], nil
}

// within appends the content of a list or an object to values: elements, or names and values
// alternately. It does not fail for a value that was scanned before.
func (s *scan) within(values []json.RawMessage, text []byte) ([]json.RawMessage, error) {
	s.begin(text)
	if _, err := s.tokens.ReadToken(); err != nil { // [ or {
		return values, err
	}
	for kind := s.tokens.PeekKind(); kind != ']' && kind != '}'; kind = s.tokens.PeekKind() {
		value, err := s.value(text)
		if err != nil {
			return values, err
		}
		values = append(values, value)
	}
	_, err := s.tokens.ReadToken() // ] or }
	return values, err
}

// place is a position in the JSON of a report: a field, or an object with more places.
type place struct {
	path   string
	field  telematics.Field  // 0: not a field
	within map[string]*place // of an object; nil: not an object
	index  int               // in outline
	end    int               // index after the last place within
}

// outline lists the places of a report in the order in which they are read: the time first,
// the answers last, and each object before its members.
var outline = func() (places []*place) {
	root := &place{within: map[string]*place{"at": {path: "at"}, "commands": {path: "commands"}}}
	for _, field := range telematics.Fields {
		if field.IsRaw() {
			continue
		}
		within, names := root, strings.Split(field.String(), ".")
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
		within.field = field
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
