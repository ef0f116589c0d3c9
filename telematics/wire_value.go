package telematics

import (
	"encoding/json"
	"strings"
)

// nested returns values by path ("location.latitude") as the JSON of nested objects.
func nested(values map[string]any) json.RawMessage {
	root := map[string]any{}
	for path, value := range values {
		object, name := root, path
		for {
			outer, rest, deeper := strings.Cut(name, ".")
			if !deeper {
				break
			}
			inner, ok := object[outer].(map[string]any)
			if !ok {
				inner = map[string]any{}
				object[outer] = inner
			}
			object, name = inner, rest
		}
		object[name] = value
	}
	return encode(root)
}
