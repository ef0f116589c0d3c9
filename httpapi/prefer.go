package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

const (
	headerPrefer            = "Prefer"
	headerPreferenceApplied = "Preference-Applied"
)

// preferences are what a caller would like of its answer (RFC 7240). A longer wait than is allowed is shortened; what is
// not understood is ignored.
type preferences struct {
	async bool          // respond-async: do not wait for the vehicle
	wait  time.Duration // how long the vehicle may take; zero: not said
}

func readPreferences(h http.Header) preferences {
	var p preferences
	for _, preference := range splitUnquoted(strings.Join(h.Values(headerPrefer), ",")) {
		preference, _, _ = strings.Cut(preference, ";") // none of ours has parameters
		name, value, _ := strings.Cut(preference, "=")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			p.async = true
		case "wait":
			if p.wait == 0 { // the first one counts
				p.wait = waitOf(value)
			}
		}
	}
	return p
}

// waitOf returns how long a caller wants to wait, but no longer than a command may take; zero: it says nothing that
// can be applied.
func waitOf(value string) time.Duration {
	seconds, err := strconv.ParseUint(value, 10, 16) // no sign, and no product that wraps around
	if errors.Is(err, strconv.ErrRange) {
		return telematics.MaxBudget
	}
	wait := time.Duration(seconds) * time.Second
	if err != nil || wait < telematics.MinBudget {
		return 0
	}
	return min(wait, telematics.MaxBudget)
}

// splitUnquoted splits at commas, but for those in quoted strings.
func splitUnquoted(list string) []string {
	quoted, escaped := false, false
	return strings.FieldsFunc(list, func(c rune) bool {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		}
		return c == ',' && !quoted
	})
}

// apply says in the answer which preferences were granted.
func (p preferences) apply(c echo.Context) {
	var applied []string
	if p.async {
		applied = append(applied, "respond-async")
	}
	if p.wait != 0 {
		applied = append(applied, "wait="+strconv.Itoa(int(p.wait.Seconds())))
	}
	if applied != nil {
		c.Response().Header().Set(headerPreferenceApplied, strings.Join(applied, ", "))
	}
}
