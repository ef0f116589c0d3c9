package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// order returns the handler of a control action. It answers when the command is settled.
func (s *server) order(a telematics.Action) echo.HandlerFunc {
	return func(c echo.Context) error {
		call := callOf(c)
		vehicle, err := vehicleParam(c)
		if err != nil {
			return err
		}
		// A caller that hangs up does not cancel its command: it may be on the air.
		ctx := context.WithoutCancel(c.Request().Context())
		command, err := s.Controller.Send(ctx, telematics.Order{
			Vehicle: vehicle, Action: a, Attention: call.attention(a), Budget: s.Budget,
			Actor: call.actor, RequestID: call.id,
		})
		if err != nil {
			return err
		}
		return s.answer(c, done(command), newCommandBody(command))
	}
}

// attention returns the parameters in the body, which the contract has checked; nil for an action that
// takes none.
func (call *call) attention(a telematics.Action) *telematics.Attention {
	if a != telematics.AttentionSignal {
		return nil
	}
	signal, _ := call.values["signal"].(string)
	attention := &telematics.Attention{Signal: telematics.Signal(signal), Duration: telematics.DefaultPulse}
	if number, ok := call.values["duration_ms"].(json.Number); ok {
		milliseconds, _ := number.Float64() // 1000.0 is an integer, too
		attention.Duration = time.Duration(milliseconds) * time.Millisecond
	}
	return attention
}

// done words what the vehicle did.
func done(c telematics.Command) string {
	switch c.Action {
	case telematics.Lock:
		return fmt.Sprintf("Vehicle %d was locked.", c.Vehicle)
	case telematics.Unlock:
		return fmt.Sprintf("Vehicle %d was unlocked.", c.Vehicle)
	case telematics.EnableDriving:
		return fmt.Sprintf("Vehicle %d may be driven.", c.Vehicle)
	case telematics.DisableDriving:
		return fmt.Sprintf("Vehicle %d was immobilised.", c.Vehicle)
	case telematics.UnlockAndEnableDriving:
		return fmt.Sprintf("Vehicle %d was unlocked and may be driven.", c.Vehicle)
	case telematics.LockAndDisableDriving:
		return fmt.Sprintf("Vehicle %d was immobilised and locked.", c.Vehicle)
	case telematics.AttentionSignal:
		return fmt.Sprintf("Vehicle %d drew attention.", c.Vehicle)
	case telematics.OpenTopCase:
		return fmt.Sprintf("The top case of vehicle %d was opened.", c.Vehicle)
	default:
		return fmt.Sprintf("Vehicle %d did %s.", c.Vehicle, c.Action)
	}
}
