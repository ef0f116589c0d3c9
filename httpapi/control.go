package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// order returns the handler of a control action. It answers when the command is settled,
// or, for a caller that prefers so, once it is on its way.
func (s *server) order(a telematics.Action) echo.HandlerFunc {
	return func(c echo.Context) error {
		call := callOf(c)
		vehicle, err := vehicleParam(c)
		if err != nil {
			return err
		}
		preferences := readPreferences(c.Request().Header)
		order := &delivery.Order{
			Vehicle: vehicle, Action: a, Attention: attention(a, call.values), Budget: cmp.Or(preferences.wait, s.Budget),
			Actor: call.actor, RequestID: call.id, Idempotency: call.key, Lookup: call.lookup,
		}
		// A caller that hangs up does not cancel its command: the controller sees to that.
		carry := s.Controller.Send
		if preferences.async {
			carry = s.Controller.Start
		}
		receipt, err := carry(c.Request().Context(), order)
		markReplayed(c, receipt.Replayed)
		if !receipt.Replayed { // which waited for nothing
			preferences.apply(c)
		}
		if err != nil {
			return err
		}
		return s.answerCommand(c, receipt.Command)
	}
}

// answerCommand answers with a command: done, or, for a call that did not wait, as it
// is by now.
func (s *server) answerCommand(c echo.Context, command *telematics.Command) error {
	if command.State.IsOpen() {
		c.Response().Header().Set(echo.HeaderLocation, "/api/v1/admin/commands/"+command.ID.String())
		return s.write(c, http.StatusAccepted, envelope{
			Success: true, Message: fmt.Sprintf("Vehicle %d is asked; look at the command for what becomes of it.", command.Vehicle),
			Data: newCommandBody(*command),
		})
	}
	if err := command.Err(); err != nil {
		return err
	}
	return s.answer(c, done(*command), newCommandBody(*command))
}

// attention returns the parameters among values that the contract has checked; nil for an action that
// takes none.
func attention(a telematics.Action, values map[string]any) *telematics.Attention {
	if a != telematics.AttentionSignal {
		return nil
	}
	signal, _ := values["signal"].(string)
	attention := &telematics.Attention{Signal: telematics.Signal(signal), Duration: telematics.DefaultPulse}
	if number, ok := values["duration_ms"].(json.Number); ok {
		milliseconds, _ := number.Float64() // 1000.0 is an integer, too
		attention.Duration = time.Duration(milliseconds) * time.Millisecond
	}
	return attention
}

// done words what the vehicle did.
func done(c telematics.Command) string {
	id := strconv.FormatInt(int64(c.Vehicle), 10)
	subject := "Vehicle " + id
	switch c.Action {
	case telematics.Lock:
		return subject + " was locked."
	case telematics.Unlock:
		return subject + " was unlocked."
	case telematics.EnableDriving:
		return subject + " may be driven."
	case telematics.DisableDriving:
		return subject + " was immobilized."
	case telematics.UnlockAndEnableDriving:
		return subject + " was unlocked and may be driven."
	case telematics.LockAndDisableDriving:
		return subject + " was immobilized and locked."
	case telematics.AttentionSignal:
		return subject + " drew attention."
	case telematics.OpenTopCase:
		return "The top case of vehicle " + id + " was opened."
	default:
		return subject + " did " + string(c.Action) + "."
	}
}

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
