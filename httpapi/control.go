package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
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
		order := &telematics.Order{
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
