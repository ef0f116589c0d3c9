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
		if plain(v) {
			return append(append(append(text, '"'), v...), '"'), nil
		}
	}
	b, err := json.Marshal(value)
	return append(text, b...), err
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

// nested writes values as nested objects, by their paths. It runs for each command and each report of a simulated fleet, so it
// builds the JSON itself, as json.Marshal would; names have no character below the point.
func nested(values map[string]any) json.RawMessage {
	paths := make([]string, 0, len(values))
	for path := range values {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	text := append(make([]byte, 0, 2+48*len(values)), '{')
	var within []string // the objects that are open
	for _, path := range paths {
		names := strings.Split(path, ".")
		leaf := len(names) - 1
		shared := 0
		for shared < min(len(within), leaf) && within[shared] == names[shared] {
			shared++
		}
		for range within[shared:] {
			text = append(text, '}')
		}
		if text[len(text)-1] != '{' {
			text = append(text, ',')
		}
		for _, name := range names[shared:leaf] {
			text = append(append(append(text, '"'), name...), `":{`...)
		}
		within = names[:leaf]
		text = append(append(append(text, '"'), names[leaf]...), `":`...)
		value := values[path]
		if at, ok := value.(time.Time); ok {
			value = formatTime(at)
		}
		var err error
		if text, err = AppendValue(text, value); err != nil {
			panic("telematics: encode " + path + ": " + err.Error())
		}
	}
	for range within {
		text = append(text, '}')
	}
	return append(text, '}')
}
