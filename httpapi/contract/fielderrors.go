package contract

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
)

// FieldErrors are the rules that fields of a request break. The zero value is empty and usable. It
// is not safe for concurrent use.
type FieldErrors struct{ messages map[string][]string }

// Invalid returns the error of one field.
func Invalid(field, message string) *FieldErrors {
	return &FieldErrors{messages: map[string][]string{field: {message}}}
}

// Error returns one sentence for people, with one broken rule of each field.
func (f *FieldErrors) Error() string {
	var parts []string
	for field, messages := range f.messages {
		parts = append(parts, field+" "+messages[0])
	}
	slices.Sort(parts)
	sentence := "The request is not valid: " + strings.Join(parts, "; ")
	if strings.HasSuffix(sentence, "?") {
		return sentence
	}
	return sentence + "."
}

// Err returns f as an error; nil: no rule is broken.
func (f *FieldErrors) Err() error {
	if len(f.messages) == 0 {
		return nil
	}
	return f
}

// Messages returns the broken rules of each field.
func (f *FieldErrors) Messages() map[string][]string { return f.messages }

// isFull reports whether no more rules are added: an answer names maxFields at most.
func (f *FieldErrors) isFull() bool { return len(f.messages) >= maxFields }

// Add adds a rule that a field breaks.
func (f *FieldErrors) Add(field, message string) {
	if f.isFull() {
		return
	}
	if f.messages == nil {
		f.messages = map[string][]string{}
	}
	if !slices.Contains(f.messages[field], message) {
		f.messages[field] = append(f.messages[field], message)
	}
}

// AddIfValid adds a rule that a field breaks, unless it breaks another one.
func (f *FieldErrors) AddIfValid(field, message string) {
	if len(f.messages[field]) == 0 {
		f.Add(field, message)
	}
}

// addSchema adds the rules in an error that the library returned for a field.
func (f *FieldErrors) addSchema(field string, schema *openapi3.Schema, err error) {
	if err == nil {
		return
	}
	var several openapi3.MultiError
	var one *openapi3.SchemaError
	switch {
	case errors.Is(err, openapi3filter.ErrInvalidEmptyValue):
		f.Add(field, "must not be empty: leave it out; otherwise it "+rule(schema))
	case errors.As(err, &several):
		for _, e := range several {
			f.addSchema(field, schema, e)
		}
	case errors.As(err, &one) && len(one.JSONPointer()) > 0 && !schema.Type.Is(openapi3.TypeArray):
		f.addMember(one, schema)
	default:
		f.Add(field, rule(schema))
	}
}

// addMember adds an error inside an object, whose members may be objects, or arrays of objects:
// rules[2].limit.
func (f *FieldErrors) addMember(err *openapi3.SchemaError, object *openapi3.Schema) {
	name, member := "", object
	for _, step := range err.JSONPointer() {
		below := member.Properties[step]
		if isArrayOfObjects(member) {
			below, step = member.Items, "["+step+"]"
		}
		if below == nil {
			break
		}
		name, member = joinPath(name, step), below.Value
	}
	wanted := rule(member)
	if member.Type.Is(openapi3.TypeNumber) {
		wanted += ", not in quotes"
	}
	switch {
	case member == object:
		f.Add(err.JSONPointer()[0], err.Reason)
	case err.SchemaField == "required":
		f.Add(name, "is required: "+wanted)
	default:
		f.Add(name, wanted)
	}
}

func isArrayOfObjects(s *openapi3.Schema) bool {
	return s.Type.Is(openapi3.TypeArray) && s.Items.Value.Type.Is(openapi3.TypeObject)
}

func joinPath(path, step string) string {
	if path == "" || strings.HasPrefix(step, "[") {
		return path + step
	}
	return path + "." + step
}

// rule returns the rule of a schema in words.
func rule(s *openapi3.Schema) string {
	switch {
	case len(s.Enum) > 0:
		var words []string
		null := ""
		for _, value := range s.Enum {
			if value == nil {
				null = ", or null"
				continue
			}
			words = append(words, fmt.Sprint(value))
		}
		return "must be one of " + strings.Join(words, ", ") + null
	case s.Type.Is(openapi3.TypeBoolean):
		return "must be true or false"
	case s.Type.Is(openapi3.TypeNumber):
		return "must be a number" + bounds(s)
	case s.Type.Is(openapi3.TypeInteger):
		return "must be an integer" + bounds(s)
	case s.Type.Is(openapi3.TypeArray) && len(s.Items.Value.Enum) > 0:
		return rule(s.Items.Value) + ", or several, separated by commas"
	case s.Type.Is(openapi3.TypeArray) && s.MaxItems != nil:
		elements := "elements"
		if s.UniqueItems {
			elements = "unique ids"
		}
		return fmt.Sprintf("must contain %d to %d %s; each %s", s.MinItems, *s.MaxItems, elements, rule(s.Items.Value))
	case s.Format == "date-time":
		return "must be a time such as 2026-01-02T10:00:00Z"
	case s.Format == "uuid":
		return "must be a UUID"
	case s.MaxLength != nil:
		return fmt.Sprintf("must be a string of %d to %d characters", s.MinLength, *s.MaxLength) + matching(s)
	case s.Type.Is(openapi3.TypeArray):
		return "must be an array, each element of which " + rule(s.Items.Value)
	case s.Type.Is(openapi3.TypeObject) && s.AdditionalProperties.Schema != nil:
		return "must be an object, each member of which " + rule(s.AdditionalProperties.Schema.Value)
	case s.Type.Is(openapi3.TypeObject):
		return "must be an object"
	default:
		return "must be a string" + matching(s)
	}
}

// matching returns the pattern of a string in words; empty: it has none.
func matching(s *openapi3.Schema) string {
	if s.Pattern == "" {
		return ""
	}
	return " that matches " + s.Pattern
}

func bounds(s *openapi3.Schema) string {
	switch {
	case s.Min != nil && s.Max != nil:
		return " from " + decimal(*s.Min) + " to " + decimal(*s.Max)
	case s.Min != nil:
		return " of at least " + decimal(*s.Min)
	}
	return ""
}

func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
