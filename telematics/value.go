package telematics

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// parser converts a JSON value to float64, string, bool, time.Time, []string or
// map[string]any, or returns what is wrong with it. The value must be valid JSON without
// surrounding spaces.
type parser func(json.RawMessage) (any, error)

// Limits of fields without a range.
const (
	MaxText  = 256 // bytes
	MaxTexts = 128 // elements of a list
	maxDepth = 16  // of nested OEM data
)

// ParseValue returns the value of a field in the type that Snapshot's accessors
// expect. JSON null is nil: no longer known. FaultOf classifies its errors.
func ParseValue(f Field, raw json.RawMessage) (any, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not JSON")
	}
	return f.Parse(bytes.Trim(raw, " \t\r\n"))
}

// Parse is ParseValue for valid JSON without surrounding spaces. FaultOf classifies its errors.
func (f Field) Parse(raw json.RawMessage) (any, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	return fields[f].parse(raw)
}

func number(low, high float64) parser {
	return func(raw json.RawMessage) (any, error) {
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
			return nil, errors.New("not a number")
		}
		if n < low || n > high {
			return nil, outOfRange("%g is outside %g to %g", n, low, high)
		}
		return n, nil
	}
}

func boolean(raw json.RawMessage) (any, error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, errors.New("not true or false")
}

func text(raw json.RawMessage) (any, error) { return ParseText(raw) }

// ParseText returns the text of a JSON string. It fails if IsText does not hold for it.
func ParseText(raw json.RawMessage) (string, error) {
	s, ok := unquote(raw)
	if !ok {
		return "", errors.New("not a string")
	}
	if !IsText(s) {
		return "", outOfRange("longer than %d bytes, or holds a NUL", MaxText)
	}
	return s, nil
}

// IsText reports whether a text is at most MaxText bytes long, and holds no NUL, which Postgres
// refuses.
func IsText(s string) bool { return len(s) <= MaxText && !strings.ContainsRune(s, 0) }

// unquote returns a JSON string's text.
func unquote(raw json.RawMessage) (s string, ok bool) {
	if plain, ok := plainText(raw); ok {
		return string(plain), true
	}
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// plainText returns the text of a JSON string that is ASCII without escapes, as nearly all
// are; else false.
func plainText(raw json.RawMessage) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	plain := raw[1 : len(raw)-1]
	for _, c := range plain {
		if c == '\\' || c >= utf8.RuneSelf {
			return nil, false
		}
	}
	return plain, true
}

func oneOf(allowed ...string) parser {
	values := make([]any, len(allowed)) // converted here, so that a known word allocates nothing
	for i, word := range allowed {
		values[i] = word
	}
	return func(raw json.RawMessage) (any, error) {
		if plain, ok := plainText(raw); ok {
			for i, word := range allowed {
				if string(plain) == word {
					return values[i], nil
				}
			}
		}
		s, err := ParseText(raw)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(allowed, s) {
			return nil, unknownWord("%q is not one of %v", s, allowed)
		}
		return s, nil
	}
}

func texts(pattern *regexp.Regexp) parser {
	return func(raw json.RawMessage) (any, error) {
		if string(raw) == "[]" { // as most vehicles report
			return []string{}, nil
		}
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, errors.New("not a list of strings")
		}
		if len(list) > MaxTexts {
			return nil, outOfRange("more than %d elements", MaxTexts)
		}
		for _, s := range list {
			if len(s) > MaxText || !pattern.MatchString(s) {
				return nil, unknownWord("%.32q does not match %s", s, pattern)
			}
		}
		return list, nil
	}
}

func instant(raw json.RawMessage) (any, error) {
	var t time.Time
	if err := t.UnmarshalJSON(raw); err != nil {
		return nil, errors.New("not an ISO 8601 time")
	}
	if t.Before(earliest) || t.Year() > 9999 {
		return nil, outOfRange("not of this age")
	}
	return t.UTC().Truncate(time.Millisecond), nil
}

func object(raw json.RawMessage) (any, error) {
	if string(raw) == "{}" { // as most vehicles report
		return map[string]any{}, nil
	}
	var m map[string]any
	if !exact(raw) || json.Unmarshal(raw, &m) != nil {
		m = nil
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if err := decoder.Decode(&m); err != nil {
			return nil, errors.New("not an object")
		}
	}
	if _, ok := storable(m, maxDepth); !ok {
		return nil, outOfRange("nested deeper than %d, holds a NUL, or a number beyond 1.8e308", maxDepth)
	}
	return m, nil
}

// exact reports whether a float64 keeps each integer of a JSON text, since none has more than 15
// digits.
func exact(raw []byte) bool {
	digits := 0
	for _, c := range raw {
		if digits++; c < '0' || c > '9' {
			digits = 0
		}
		if digits > 15 {
			return false
		}
	}
	return true
}

// storable returns a JSON value with its numbers as float64, and reports whether it can be stored:
// it has no NUL, which Postgres refuses, and is nested at most depth levels, so that it exhausts no
// stack. An integer of up to 20 characters whose digits a float64 would lose stays a json.Number.
func storable(v any, depth int) (_ any, ok bool) {
	ok = true
	switch v := v.(type) {
	case json.Number:
		n, err := v.Float64()
		if len(v) <= 20 && !strings.ContainsAny(string(v), ".eE") && strconv.FormatFloat(n, 'f', -1, 64) != string(v) {
			return v, true
		}
		return n, err == nil
	case string:
		return v, !strings.ContainsRune(v, 0)
	case []any:
		ok = depth > 0
		for i := 0; ok && i < len(v); i++ {
			v[i], ok = storable(v[i], depth-1)
		}
	case map[string]any:
		for key, e := range v {
			if ok = ok && depth > 0 && !strings.ContainsRune(key, 0); ok {
				v[key], ok = storable(e, depth-1)
			}
		}
	}
	return v, ok
}
