package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/google/uuid"

	"motorpool/telematics"
)

// Request is a request to an operation.
type Request struct {
	*http.Request
	Content []byte                   // the whole body
	Query   url.Values               // as net/http parses it
	Param   func(name string) string // returns a parameter of the path
}

// Validate checks a request, and adds every rule that it breaks to wrong. It returns the members of
// the body that are not null; nil: the operation has no body. Its error is a *telematics.Error for
// a body that is not JSON.
func (o *Operation) Validate(r Request, wrong *FieldErrors) (values map[string]any, err error) {
	if o.spec == nil {
		return nil, nil
	}
	isObject := false
	if o.spec.RequestBody != nil {
		if values, isObject, err = r.readValues(wrong); err != nil {
			return nil, err
		}
	}
	o.validateParameters(r, wrong)
	if isObject {
		schema := o.spec.RequestBody.Value.Content.Get(mediaJSON).Schema.Value
		wrong.refuseUnknown("", schema, values)
		maps.DeleteFunc(values, func(_ string, value any) bool { return value == nil })
		wrong.addSchema("body", schema, schema.VisitJSON(values, append(formats, openapi3.MultiErrors(), openapi3.VisitAsRequest())...))
	}
	if o.bodiless {
		wrong.refuseBody(r.Content)
	}
	return values, nil
}

const mediaJSON = "application/json"

// readValues reads the body as a JSON object, and reports whether it is one. An empty body or null
// counts as an object without members.
func (r Request) readValues(wrong *FieldErrors) (map[string]any, bool, error) {
	values := map[string]any{}
	if len(bytes.TrimSpace(r.Content)) == 0 {
		return values, true, nil
	}
	if !isJSON(r.Header) {
		return nil, false, &telematics.Error{
			Code:    UnsupportedMediaType,
			Message: "Unsupported media type: send application/json without Content-Encoding.",
		}
	}
	var body any
	decoder := json.NewDecoder(bytes.NewReader(r.Content))
	decoder.UseNumber() // so that a number out of range is an error of its field
	if err := decoder.Decode(&body); err != nil || !utf8.Valid(r.Content) {
		return nil, false, &telematics.Error{Code: MalformedJSON, Message: "The request body is not JSON."}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, false, &telematics.Error{Code: MalformedJSON, Message: "The request body has content after its JSON value."}
	}
	switch body := body.(type) {
	case nil:
	case map[string]any:
		values = body
	default:
		wrong.Add("body", "must be a JSON object")
		return values, false, nil
	}
	if name, repeated := RepeatedName(r.Content); repeated {
		wrong.Add(name, "must not be repeated")
	}
	return values, true, nil
}

func isJSON(h http.Header) bool {
	kind, parameters, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset, named := parameters["charset"]
	return err == nil && kind == mediaJSON && (!named || strings.EqualFold(charset, "utf-8")) &&
		h.Get("Content-Encoding") == ""
}

// formats are checked here because the library does not check them, or not strictly enough.
var formats = []openapi3.SchemaValidationOption{
	openapi3.WithStringFormatValidators(map[string]openapi3.StringFormatValidator{
		"date-time": openapi3.NewCallbackValidator(func(s string) error {
			_, err := ParseTime(s)
			return err
		}),
		"uuid": openapi3.NewCallbackValidator(func(s string) error {
			_, err := ParseUUID(s)
			return err
		}),
	}),
}

// everyRule makes the library return all broken rules, and set no defaults.
var everyRule = &openapi3filter.Options{MultiError: true, SkipSettingDefaults: true, SchemaValidationOptions: formats}

func (o *Operation) validateParameters(r Request, wrong *FieldErrors) {
	input := &openapi3filter.RequestValidationInput{Request: r.Request, QueryParams: r.Query, Options: everyRule}
	// net/http drops the parts that it cannot parse, which may be filters.
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		wrong.Add("query", "must be name=value pairs joined by &, percent-encoded")
	}
	wrong.refuseUnknownQuery(o.spec, r.Query)
	for _, ref := range o.spec.Parameters {
		parameter := ref.Value
		if len(input.QueryParams[parameter.Name]) > 1 {
			wrong.Add(parameter.Name, "must not be repeated")
			continue
		}
		value := input.QueryParams.Get(parameter.Name)
		if parameter.In == openapi3.ParameterInPath {
			value = r.Param(parameter.Name)
			input.PathParams = map[string]string{parameter.Name: value}
		}
		if value != "" && !isWritten(parameter.Schema.Value, value) {
			wrong.Add(parameter.Name, rule(parameter.Schema.Value))
			continue
		}
		if !utf8.ValidString(value) || strings.ContainsRune(value, 0) { // Postgres refuses these
			wrong.Add(parameter.Name, "must be a UTF-8 string without NUL")
			continue
		}
		if parameter.Required && parameter.In == openapi3.ParameterInQuery && !input.QueryParams.Has(parameter.Name) {
			wrong.Add(parameter.Name, "is required: "+rule(parameter.Schema.Value))
			continue
		}
		err := openapi3filter.ValidateParameter(r.Context(), input, parameter)
		if err != nil && parameter.In == openapi3.ParameterInQuery && parameter.Schema.Value.Format == "date-time" && value != "" {
			wrong.Add(parameter.Name, rule(parameter.Schema.Value)+"; in a query, write + as %2B")
			continue
		}
		wrong.addSchema(parameter.Name, parameter.Schema.Value, err)
	}
}

// isWritten reports whether a parameter is written as in JSON. The library also accepts 1 and T for
// a boolean, and 0042 for an integer, which may be what a fleet calls another vehicle.
func isWritten(s *openapi3.Schema, text string) bool {
	switch {
	case s.Type.Is(openapi3.TypeBoolean):
		return text == "true" || text == "false"
	case s.Type.Is(openapi3.TypeInteger):
		_, ok := ParseInteger(text)
		return ok
	case s.Type.Is(openapi3.TypeArray):
		for part := range strings.SplitSeq(text, ",") {
			if !isWritten(s.Items.Value, part) {
				return false
			}
		}
	}
	return true
}

// ParseInteger reads an integer of 64 bits in the one form in which it is written; else false.
func ParseInteger(s string) (n int64, ok bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}

// ParseTime parses a time of RFC 3339 whose year in UTC is one of 1 to 9999, so that it, and the
// day before it, can be formatted in the same form. It returns the time in UTC, or an error for any
// other text.
func ParseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if t = t.UTC(); err != nil || !dateTime.MatchString(s) || t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, errTime
	}
	return t, nil
}

var (
	// time.Parse also accepts 9:00 and 09:00:00,5.
	dateTime = regexp.MustCompile(openapi3.FormatOfStringDateTime)
	errTime  = errors.New("no time of RFC 3339, or its year in UTC is not one of 1 to 9999")
)

// ParseUUID parses only the canonical form of 36 characters, and returns an error for others, which
// the library also accepts; and for the UUID of zeros, which is no id of ours, and means none in
// queries.
func ParseUUID(s string) (uuid.UUID, error) {
	const canonical = 36
	id, err := uuid.Parse(s)
	if err == nil && (len(s) != canonical || id == uuid.Nil) {
		err = errors.New("not a UUID of an object")
	}
	if err != nil {
		return uuid.Nil, err
	}
	return id, nil
}
