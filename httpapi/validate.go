package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// validate checks a request against its operation in the contract, and reports every rule that it breaks. Its error
// is about a body that cannot be read at all.
func (d *contract) validate(c echo.Context, call *call, operation *openapi3.Operation, wrong *fieldErrors) error {
	isObject := false
	if operation.RequestBody != nil {
		var err error
		if isObject, err = call.readValues(c.Request().Header, wrong); err != nil {
			return err // 415, 400
		}
	}
	d.validateParameters(c, operation, wrong)
	if isObject {
		schema := operation.RequestBody.Value.Content.Get(echo.MIMEApplicationJSON).Schema.Value
		wrong.refuseUnknown("", schema, call.values)
		maps.DeleteFunc(call.values, func(_ string, value any) bool { return value == nil })
		wrong.add("body", schema, schema.VisitJSON(call.values, append(formats, openapi3.MultiErrors(), openapi3.VisitAsRequest())...))
	}
	return nil
}

// readValues reads the body as a JSON object, and reports whether it is one. An empty one, and null, is an object
// without members.
func (call *call) readValues(h http.Header, wrong *fieldErrors) (bool, error) {
	call.values = map[string]any{}
	if len(bytes.TrimSpace(call.body)) == 0 {
		return true, nil
	}
	if !isJSON(h) {
		return false, &telematics.Error{Code: unsupportedMediaType, Message: "Send the body as Content-Type: application/json, not encoded."}
	}
	var body any
	decoder := json.NewDecoder(bytes.NewReader(call.body))
	decoder.UseNumber() // a number out of range is a field's fault, not the document's
	if err := decoder.Decode(&body); err != nil || !utf8.Valid(call.body) {
		return false, malformed("The request body is not JSON.", nil)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return false, malformed("The request body goes on after its JSON value.", nil)
	}
	switch body := body.(type) {
	case nil:
	case map[string]any:
		call.values = body
	default:
		wrong.say("body", "must be a JSON object")
		return false, nil
	}
	if name, repeated := repeatedName(call.body); repeated {
		wrong.say(name, "must come once")
	}
	return true, nil
}

func isJSON(h http.Header) bool {
	kind, parameters, err := mime.ParseMediaType(h.Get(echo.HeaderContentType))
	charset, named := parameters["charset"]
	return err == nil && kind == echo.MIMEApplicationJSON && (!named || strings.EqualFold(charset, "utf-8")) &&
		h.Get(echo.HeaderContentEncoding) == ""
}

// formats are those that the checking library leaves to us, or takes too lightly: it knows no calendar.
var formats = []openapi3.SchemaValidationOption{
	openapi3.WithStringFormatValidators(map[string]openapi3.StringFormatValidator{
		"date-time": openapi3.NewCallbackValidator(func(s string) error {
			_, err := parseTime(s)
			return err
		}),
		"uuid": openapi3.NewCallbackValidator(func(s string) error {
			_, err := parseUUID(s)
			return err
		}),
	}),
}

// everyRule has all broken rules told, and nothing changed.
var everyRule = &openapi3filter.Options{MultiError: true, SkipSettingDefaults: true, SchemaValidationOptions: formats}

func (d *contract) validateParameters(c echo.Context, operation *openapi3.Operation, wrong *fieldErrors) {
	input := &openapi3filter.RequestValidationInput{Request: c.Request(), QueryParams: c.QueryParams(), Options: everyRule}
	if _, err := url.ParseQuery(c.Request().URL.RawQuery); err != nil { // its parts are dropped, filters among them
		wrong.say("query", "must be name=value pairs joined by &, percent-encoded")
	}
	if method := c.Request().Method; (method == http.MethodPut || method == http.MethodDelete) && strings.HasPrefix(c.Path(), "/api/v1/admin/") {
		wrong.refuseUnknownQuery(operation, input.QueryParams)
	}
	for _, ref := range operation.Parameters {
		parameter := ref.Value
		if len(input.QueryParams[parameter.Name]) > 1 {
			wrong.say(parameter.Name, "must come once")
			continue
		}
		value := input.QueryParams.Get(parameter.Name)
		if !utf8.ValidString(value) || strings.ContainsRune(value, 0) { // no store takes them
			wrong.say(parameter.Name, "must be text in UTF-8 without NUL")
			continue
		}
		if parameter.Required && parameter.In == openapi3.ParameterInQuery && !input.QueryParams.Has(parameter.Name) {
			wrong.say(parameter.Name, "is required: "+rule(parameter.Schema.Value))
			continue
		}
		if parameter.Schema.Value.Type.Is(openapi3.TypeBoolean) && value != "" && value != "true" && value != "false" { // the library takes 1 and T, too
			wrong.say(parameter.Name, rule(parameter.Schema.Value))
			continue
		}
		if d.anyInteger[parameter] && isInteger(c.Param(parameter.Name)) || d.isAnyText(parameter, input.Request.Header) || !parameter.Required && absent(parameter, input) {
			continue // the library would find the same, and take longer, and more stack than an order that waits should keep
		}
		if parameter.In == openapi3.ParameterInPath && input.PathParams == nil {
			input.PathParams = pathParameters(c)
		}
		err := openapi3filter.ValidateParameter(c.Request().Context(), input, parameter)
		if err != nil && parameter.In == openapi3.ParameterInQuery && parameter.Schema.Value.Format == "date-time" && value != "" {
			wrong.say(parameter.Name, rule(parameter.Schema.Value)+"; in a query, write + as %2B")
			continue
		}
		wrong.add(parameter.Name, parameter.Schema.Value, err)
	}
}

// isAnyText reports whether a header's text is certain to be as it may be.
func (d *contract) isAnyText(parameter *openapi3.Parameter, h http.Header) bool {
	if d.anyText[parameter] == 0 {
		return false
	}
	text := h.Get(parameter.Name)
	return text != "" && len(text) <= d.anyText[parameter]
}

func isInteger(s string) bool {
	_, err := integer(s)
	return err == nil
}

func pathParameters(c echo.Context) map[string]string {
	parameters := map[string]string{}
	for i, name := range c.ParamNames() {
		parameters[name] = c.ParamValues()[i]
	}
	return parameters
}

// absent reports whether a header or a parameter of the query was not sent, not even empty. That of an object goes by other names.
func absent(parameter *openapi3.Parameter, input *openapi3filter.RequestValidationInput) bool {
	switch schema := parameter.Schema; {
	case schema == nil || !schema.Value.Type.Is(openapi3.TypeString) && !schema.Value.Type.Is(openapi3.TypeInteger) &&
		!schema.Value.Type.Is(openapi3.TypeBoolean) && !schema.Value.Type.Is(openapi3.TypeArray):
		return false
	case parameter.In == openapi3.ParameterInHeader:
		_, sent := input.Request.Header[http.CanonicalHeaderKey(parameter.Name)]
		return !sent
	case parameter.In == openapi3.ParameterInQuery:
		return !input.QueryParams.Has(parameter.Name)
	}
	return false
}
