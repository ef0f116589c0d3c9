package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"
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
			if !f.isFull() { // else the nearest is not looked for
				f.Add(prefix+name, unknownMember(name, schema))
			}
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
		if slices.Contains(known, name) {
			continue
		}
		if f.isFull() {
			return
		}
		f.Add(strings.ToValidUTF8(name, "\uFFFD"), unknownParameter(name, known))
	}
}

// unknownParameter is the message about a query parameter that an operation does not have.
func unknownParameter(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return "is not a parameter of this request: did you mean `" + near + "`?"
	}
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
func unknownMember(name string, schema *openapi3.Schema) string {
	known := slices.Sorted(maps.Keys(schema.Properties))
	if near := Nearest(name, known); near != "" {
		return "is unknown: did you mean `" + near + "`?"
	}
	if len(known) == 0 {
		return "is unknown: this request takes no members"
	}
	return "is unknown: the members are " + strings.Join(known, ", ")
}

// Nearest returns the known name that was probably meant, or "". Letter case, _ and - are ignored;
// of the rest, a third of the characters may differ, and always one.
func Nearest(name string, known []string) string {
	if len(name) > maxGuessed {
		return ""
	}
	near, least := "", 0
	for _, candidate := range known {
		a, b := bare(name), bare(candidate)
		distance := editDistance(a, b)
		if distance <= max(1, len(b)/3) && distance < len(b) && (near == "" || distance < least) {
			near, least = candidate, distance
		}
	}
	return near
}

func bare(name string) []rune {
	return []rune(strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name)))
}

// editDistance returns how many characters must be inserted, removed, replaced or swapped with
// their neighbour to convert one text to the other (optimal string alignment).
func editDistance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// RepeatedName returns the path of the first member that occurs twice in its object, or false. The
// text must be valid JSON. Parsers differ on which of the two counts (RFC 8259, section 4).
func RepeatedName(text []byte) (string, bool) {
	_, err := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true)).ReadValue()
	var wrong *jsontext.SyntacticError
	if !errors.As(err, &wrong) || !errors.Is(err, jsontext.ErrDuplicateName) {
		return "", false
	}
	var path strings.Builder // a body may have many levels
	for step := range wrong.JSONPointer.Tokens() {
		switch _, isElement := ParseInteger(step); {
		case isElement:
			step = "[" + step + "]"
		case path.Len() > 0:
			path.WriteByte('.')
		}
		path.WriteString(step)
	}
	return path.String(), true
}
