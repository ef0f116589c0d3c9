package telematics

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AppendValue adds the JSON of a reported value.
func AppendValue(text []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(text, "null"...), nil
	case bool:
		return strconv.AppendBool(text, v), nil
	case float64:
		if abs := math.Abs(v); v == 0 || abs >= 1e-6 && abs < 1e15 { // else it is written with an exponent
			return strconv.AppendFloat(text, v, 'f', -1, 64), nil
		}
	case string:
		return AppendText(text, v), nil
	}
	b, err := json.Marshal(value)
	return append(text, b...), err
}

// AppendText adds the JSON of a text.
func AppendText(text []byte, s string) []byte {
	if plain(s) {
		return append(append(append(text, '"'), s...), '"')
	}
	return append(text, encode(s)...)
}

// plain reports whether a text is its own JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// pathValue is a value, and the names of the objects that it is in, with points between.
type pathValue struct {
	path  string
	value any
}

// nested writes values as nested objects. It runs for each command and each report of a simulated fleet, so it
// builds the JSON itself, as json.Marshal would; names have no character below the point.
func nested(values []pathValue) json.RawMessage {
	slices.SortFunc(values, func(a, b pathValue) int { return strings.Compare(a.path, b.path) })
	text := append(make([]byte, 0, 2+48*len(values)), '{')
	open := "" // the path of the objects that are, with a point at its end
	for _, v := range values {
		shared := sharedObjects(open, v.path)
		for range strings.Count(open[shared:], ".") {
			text = append(text, '}')
		}
		if text[len(text)-1] != '{' {
			text = append(text, ',')
		}
		leaf := strings.LastIndexByte(v.path, '.') + 1
		for rest := v.path[shared:leaf]; rest != ""; {
			name, below, _ := strings.Cut(rest, ".")
			text = append(append(append(text, '"'), name...), `":{`...)
			rest = below
		}
		open = v.path[:leaf]
		text = append(append(append(text, '"'), v.path[leaf:]...), `":`...)
		var err error
		if text, err = appendReported(text, v.value); err != nil {
			panic("telematics: encode " + v.path + ": " + err.Error())
		}
	}
	for range strings.Count(open, ".") {
		text = append(text, '}')
	}
	return append(text, '}')
}

func appendReported(text []byte, value any) ([]byte, error) {
	if at, ok := value.(time.Time); ok {
		return append(AppendTime(append(text, '"'), at), '"'), nil
	}
	return AppendValue(text, value)
}

// sharedObjects returns how much of the path of open objects leads to what is at another path, too.
func sharedObjects(open, path string) int {
	shared := 0
	for i := range min(len(open), len(path)) {
		if open[i] != path[i] {
			break
		}
		if open[i] == '.' {
			shared = i + 1
		}
	}
	return shared
}
