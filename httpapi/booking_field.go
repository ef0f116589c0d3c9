package httpapi

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"motorpool/httpapi/contract"
	"motorpool/rental"
)

// text returns a text of the body, which the contract has checked.
func (call *call) text(name string) string {
	text, _ := call.values[name].(string)
	return text
}

// time returns a time of the body, which the contract has checked.
func (call *call) time(name string) time.Time {
	t, err := contract.ParseTime(call.text(name))
	if err != nil {
		return time.Time{}
	}
	return t
}

// wholeNumber returns an integer of the body, which may be written as 42.0; zero: there is none, or it has more than 64 bits.
func (call *call) wholeNumber(name string) int64 { return wholeNumber(call.values[name]) }

func wholeNumber(v any) int64 {
	number, _ := v.(json.Number)
	if n, err := number.Int64(); err == nil {
		return n
	}
	f, err := number.Float64()
	if err != nil || math.Abs(f) > maxExact {
		return 0
	}
	return int64(f)
}

// maxExact is the largest integer up to which a float64 has every one.
const maxExact = 1 << 53

// amount returns the amount of the body in a currency, exactly as it was written; zero: there is none.
func (call *call) amount(c rental.Currency) (rental.Minor, error) {
	number, ok := call.values["amount"].(json.Number)
	if !ok {
		return 0, nil
	}
	m, err := c.Parse(number.String())
	if err != nil {
		return 0, contract.Invalid("amount", err.Error())
	}
	return m, nil
}

// checkAmount checks what can be said of an amount before its currency is known.
func checkAmount(call *call, wrong *contract.FieldErrors) {
	number, ok := call.values["amount"].(json.Number)
	if !ok {
		return
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(number.String()), "e")
	if strings.HasPrefix(mantissa, "-") || !strings.ContainsAny(mantissa, "123456789") {
		wrong.AddIfValid("amount", "must be more than 0")
	}
}

// checkText checks a text that a person wrote: it says something, and no store refuses it.
func checkText(call *call, name string, wrong *contract.FieldErrors) {
	text := call.text(name)
	if strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0) {
		wrong.AddIfValid(name, "must be text that is not blank, without NUL")
	}
}
