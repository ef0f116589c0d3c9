package ovms

import (
	"fmt"
	"regexp"
	"strings"

	"motorpool/telematics"
)

var errTooLarge = fmt.Errorf("larger than %d bytes", telematics.MaxMessage)

// The texts of the module's shell (vehicle_shell.cpp: vehicle_lock, vehicle_unlock;
// ovms_server_v3.cpp: ovmsv3_update).
const (
	locked      = "Vehicle locked"
	unlocked    = "Vehicle unlocked"
	scheduled   = "Server V3 data update for all metrics has been scheduled"
	noLock      = "Error: Vehicle lock functionality not available"
	noUnlock    = "Error: Vehicle unlock functionality not available"
	noVehicle   = "Error: No vehicle module selected"
	lockFails   = "Error: vehicle could not be locked"
	unlockFails = "Error: vehicle could not be unlocked"
)

// notRun begins the texts of a shell that has not run the line (ovms_command.cpp: OvmsCommandApp).
var notRun = regexp.MustCompile(`^(Unrecognised command|Usage:|Error:)`)

// digits may be the PIN: a shell that does not understand a line may print it.
var digits = regexp.MustCompile(`[0-9]+`)

// maxDetail is how much of an unknown text is kept as detail, in bytes.
const maxDetail = 120

// meaning returns the answer that a text of the module's shell stands for. A text that is neither
// known nor an error, as one that was cut, shows nothing: the command may have been executed
// [LAW-3].
func meaning(text string) telematics.Answer {
	switch text {
	case locked, unlocked:
		return telematics.Answer{State: telematics.Received}
	case scheduled:
		return telematics.Answer{State: telematics.Succeeded}
	case noLock, noUnlock, noVehicle:
		return telematics.Answer{State: telematics.Rejected, Reason: telematics.Unsupported, Detail: text}
	case lockFails, unlockFails:
		return telematics.Answer{State: telematics.Failed, Detail: text}
	}
	if !notRun.MatchString(text) {
		return telematics.Answer{State: telematics.Received}
	}
	return telematics.Answer{State: telematics.Failed, Detail: clean(digits.ReplaceAllString(text, "…"), maxDetail)}
}

// clean returns at most the first most bytes of a text, valid UTF-8 and without NUL.
func clean(text string, most int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
