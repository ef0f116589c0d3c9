package errorcode

import (
	"fmt"
	"strings"

	"motorpool/rental"
	"motorpool/telematics"
)

// driverMessages are what a driver reads, by code, where the message for staff names causes or
// remedies that are not the driver's.
var driverMessages = map[telematics.Code]string{
	telematics.BestEffortIsDenied:    "This vehicle cannot be opened with the app. Contact your agency.",
	telematics.VehicleHasNoUnit:      "This vehicle cannot be opened or locked with the app. Contact your agency.",
	telematics.CommandNotSupported:   "This vehicle cannot do this with the app. Contact your agency.",
	telematics.CommandInProgress:     "The vehicle still works on an earlier command; nothing was sent. Try again in a moment.",
	telematics.TelematicsUnavailable: "The command could not be sent; nothing was executed. Try again in a moment.",
	telematics.CommandsHalted:        "Commands are halted for now; nothing was sent. Try again later.",
	telematics.CommandRejected:       "The vehicle refused the command; nothing was executed. If it does so again, contact your agency.",
	telematics.CommandFailed:         "The vehicle tried, and failed. If it does so again, contact your agency.",
	telematics.CommandTimeout:        mayHaveForDriver,
}

const mayHaveForDriver = "The vehicle has not confirmed the command in time; it may still execute it. " +
	"Look at the vehicle before you try again."

// ForDriver returns the error as a client may read it: in words for the driver of a car. What an
// operator wrote about a halt is for staff alone.
func ForDriver(e *telematics.Error) *telematics.Error {
	public := *e
	message, other := driverMessages[e.Code]
	switch {
	case e.Code == telematics.VehicleStateConflict: // what the unit said may be in brackets
		public.Message = strings.Replace(e.Message, fmt.Sprintf(" (%s)", e.Detail), "", 1)
		return &public
	case !other:
		return e
	case e.Code == telematics.CommandsHalted:
		public.Reason, public.Detail = "", ""
	case e.Code == telematics.CommandRejected && e.Outcome == telematics.MayHave:
		message = mayHaveForDriver
	}
	public.Message = message
	return &public
}

// OfTransition returns why a transition has failed, as its client may read it: of reasons, only
// that of a bank, unless it is secret.
func OfTransition(f *telematics.Failure) *telematics.Error {
	public := *ForDriver(f.Err())
	public.Command, public.Detail, public.Reason = telematics.NoCommand, "", rental.ReasonForClient(public.Reason)
	if public.Code != rental.PaymentRequired {
		public.Reason = ""
	}
	return &public
}
