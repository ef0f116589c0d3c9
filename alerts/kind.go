package alerts

// kinds are what units announce, in words, by the name in their protocol. What is not listed opens
// an alert with that name.
var kinds = map[string]string{
	"alarm.sounding":    "its alarm sounds",
	"batt.12v.alert":    "its 12 V battery is critical",
	"batt.12v.shutdown": "its unit shuts down to save the 12 V battery",
	"crash":             "impact",
	"flatbed.moved":     "it is moved with the ignition off",
	"jamming":           "radio is jammed",
	"towing":            "it is towed",
	"unplugged":         "its unit has no power from the vehicle",
	"valet.bounds":      "it left the area of the valet mode",
}

// IsEnd reports whether a unit announces with this kind that an earlier alarm has ended. That opens
// no alert, and clears none: what set off an alarm is worth a look, also when it is silent again.
func IsEnd(kind string) bool { return kind == "alarm.stopped" || kind == "batt.12v.recovered" }
