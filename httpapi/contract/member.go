package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// refuseUnknown adds an error for each member of a JSON object that its schema does not have, and
// removes the member, so that the others can be checked. It descends into objects, and arrays of
// objects; prefix is the path of this one, with a dot at its end.
func (f *FieldErrors) refuseUnknown(prefix string, schema *openapi3.Schema, object map[string]any) {
	if schema.AdditionalProperties.Has == nil || *schema.AdditionalProperties.Has {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		member := schema.Properties[name]
		if member == nil {
			f.Add(prefix+name, unknownMember(schema))
			delete(object, name)
			continue
		}
		switch inner := object[name].(type) {
		case map[string]any:
			f.refuseUnknown(prefix+name+".", member.Value, inner)
		case []any:
			f.refuseUnknownOf(prefix+name, member.Value, inner)
		}
	}
}

func (f *FieldErrors) refuseUnknownOf(path string, schema *openapi3.Schema, list []any) {
	if schema.Items == nil {
		return
	}
	for i, element := range list {
		if inner, ok := element.(map[string]any); ok {
			f.refuseUnknown(fmt.Sprintf("%s[%d].", path, i), schema.Items.Value, inner)
		}
	}
}

// refuseUnknownQuery adds an error for each query parameter that the operation does not have: if a
// misspelt one were ignored, the request would affect or return more than its caller wanted, such
// as the halt of all agencies or the bookings of all clients.
func (f *FieldErrors) refuseUnknownQuery(spec *openapi3.Operation, sent url.Values) {
	var known []string
	for _, ref := range spec.Parameters {
		if ref.Value.In == openapi3.ParameterInQuery {
			known = append(known, ref.Value.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if !slices.Contains(known, name) {
			f.Add(strings.ToValidUTF8(name, "\uFFFD"), unknownParameter(known))
		}
	}
}

// unknownParameter is the message about a query parameter that an operation does not have.
func unknownParameter(known []string) string {
	if len(known) == 0 {
		return "is not a parameter of this request, which has none"
	}
	return "is not a parameter of this request; its parameters are " + strings.Join(known, ", ")
}

// noMembers is the schema of a body where none is expected.
var noMembers = &openapi3.Schema{AdditionalProperties: openapi3.AdditionalProperties{Has: new(bool)}}

// refuseBody checks the body of a change without one: it may be empty, null, or an object without
// members.
func (f *FieldErrors) refuseBody(body []byte) {
	if len(bytes.TrimSpace(body)) == 0 {
		return
	}
	var object map[string]any
	if json.Unmarshal(body, &object) != nil {
		f.Add("body", "must be empty, or {}: this request takes no members")
		return
	}
	f.refuseUnknown("", noMembers, object)
}

// unknownMember is the message about a member that a schema does not have.
func unknownMember(schema *openapi3.Schema) string {
	known := slices.Sorted(maps.Keys(schema.Properties))
	if len(known) == 0 {
		return "is unknown: this request takes no members"
	}
	return "is unknown: the members are " + strings.Join(known, ", ")
}

// RepeatedName returns the path of the first member that occurs twice in its object, or false. The
// text must be valid JSON. Parsers differ on which of the two counts (RFC 8259, section 4).
func RepeatedName(text []byte) (string, bool) {
	path := repeatedName(json.NewDecoder(bytes.NewReader(text)))
	slices.Reverse(path)
	return strings.Join(path, "."), path != nil
}

// repeatedName reads one value to its end, and returns nil, or to the first repetition, and returns
// that member and those around it. Its depth is bounded: the text was decoded before, which fails
// beyond 10,000 levels, of which each must need little memory.
func repeatedName(decoder *json.Decoder) []string {
	opening, err := decoder.Token()
	delimiter, ok := opening.(json.Delim)
	if err != nil || !ok {
		return nil
	}
	names := map[string]bool{}
	for decoder.More() {
		var member []string // none around an element of an array
		if delimiter == '{' {
			token, err := decoder.Token()
			name, ok := token.(string)
			if err != nil || !ok {
				return nil
			}
			member = []string{name}
			if names[name] {
				return member
			}
			names[name] = true
		}
		if repeated := repeatedName(decoder); repeated != nil {
			return append(repeated, member...)
		}
	}
	_, _ = decoder.Token() // the end of the object or the array
	return nil
}
