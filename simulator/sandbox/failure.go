package sandbox

import (
	"fmt"
	"net/http"
)

// Types and codes of errors (https://docs.stripe.com/api/errors,
// https://docs.stripe.com/error-codes).
const (
	cardError        = "card_error"
	invalidRequest   = "invalid_request_error"
	idempotencyError = "idempotency_error"
	apiError         = "api_error"

	unexpectedState  = "payment_intent_unexpected_state"
	resourceMissing  = "resource_missing"
	parameterUnknown = "parameter_unknown"
	parameterMissing = "parameter_missing"
	parameterInvalid = "parameter_invalid_integer"
	authentication   = "authentication_required"
)

// failure is an error as Stripe words it.
type failure struct {
	Status      int
	Type        string
	Code        string
	DeclineCode string
	AdviceCode  string
	Param       string
	Message     string
	Charge      string
	Intent      view
	Method      view

	fleeting bool // not kept under the key: nothing was begun
}

func (f *failure) view() view {
	e := view{"type": f.Type, "message": f.Message}
	for name, value := range map[string]string{
		"code": f.Code, "decline_code": f.DeclineCode, "advice_code": f.AdviceCode, "param": f.Param, "charge": f.Charge,
	} {
		if value != "" {
			e[name] = value
		}
	}
	if f.Intent != nil {
		e["payment_intent"] = f.Intent
	}
	if f.Method != nil {
		e["payment_method"] = f.Method
	}
	return view{"error": e}
}

func refused(code, param, message string, args ...any) *failure {
	return &failure{Status: http.StatusBadRequest, Type: invalidRequest, Code: code, Param: param, Message: fmt.Sprintf(message, args...)}
}

// missing is of an object that the path names.
func missing(kind, id string) *failure {
	f := refused(resourceMissing, "id", "No such %s: '%s'", kind, id)
	f.Status = http.StatusNotFound
	return f
}

// missingAt is of an object that a parameter names.
func missingAt(param, kind, id string) *failure {
	return refused(resourceMissing, param, "No such %s: '%s'", kind, id)
}

func noKey(message string) *failure {
	return &failure{Status: http.StatusUnauthorized, Type: invalidRequest, Message: message, fleeting: true}
}

func broken() *failure {
	return &failure{Status: http.StatusInternalServerError, Type: apiError, Message: "An error occurred on our end (ordered)."}
}

func tooMany() *failure {
	return &failure{
		Status: http.StatusTooManyRequests, Type: invalidRequest, Code: "rate_limit",
		Message: "Too many requests (ordered).", fleeting: true,
	}
}

func lockTimeout() *failure {
	return &failure{Status: http.StatusTooManyRequests, Type: invalidRequest, Code: "lock_timeout", fleeting: true,
		Message: "This object cannot be accessed right now because another API request is currently accessing it."}
}

func keyInUse(key string) *failure {
	return &failure{Status: http.StatusConflict, Type: idempotencyError, Code: "idempotency_key_in_use", fleeting: true,
		Message: fmt.Sprintf("There is currently another in-progress request using this Idempotency Key (%s).", key)}
}

func keyMismatch(key string) *failure {
	return &failure{Status: http.StatusBadRequest, Type: idempotencyError, fleeting: true,
		Message: fmt.Sprintf("Keys for idempotent requests can only be used with the same parameters they were first used with (%s).", key)}
}
