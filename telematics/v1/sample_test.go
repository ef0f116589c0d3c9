package v1

import "strings"

// sampleReports are reports of a unit: of a combustion car, with all fields, with a change only,
// and with answers to its latest commands.
var sampleReports = map[string]string{
	"common":  commonReport,
	"whole":   wholeReport,
	"partial": `{"at":"2026-01-02T10:00:00.000Z","telemetry":{"is_locked":true,"doors":{"front_left":"closed"}}}`,
	"answers": strings.TrimSuffix(commonReport, "}") + `,"commands":[` + strings.TrimPrefix(strings.Repeat(
		`,{"command_id":"0b6e5a4c-8f1d-4a7e-9c3b-2d1e0f9a8b7c","status":"succeeded","at":"2026-01-02T09:59:02.310Z"}`, maxAnswers),
		",") + `]}`,
}

const commonReport = `{"at":"2026-01-02T10:00:00.000Z",` +
	`"location":{"latitude":48.1371,"longitude":11.5754,"heading":270,"timestamp":"2026-01-02T09:59:58.000Z"},` +
	`"telemetry":{"speed_kmh":48.5,"mileage_km":15230.4,"ignition":"on","gear":"D","fuel_level_percent":61,"remaining_range_km":412,` +
	`"onboard_voltage_v":12.6,"is_locked":false,"is_engine_running":true,"key_status":"in",` +
	`"doors":{"front_left":"closed","front_right":"closed","rear_left":"closed","rear_right":"closed","trunk":"closed"}},` +
	`"diagnostics":{"dtcs":["P0420"],"service_due_in_km":4200,"oil_life_percent":61},` +
	`"connectivity":{"rsrp_dbm":-97,"firmware_version":"4.2.1"},"oem_data":{}}`

const wholeReport = `{"at":"2026-01-02T10:00:00.000Z",` +
	`"location":{"latitude":48.1371,"longitude":11.5754,"heading":270,"timestamp":"2026-01-02T09:59:58.000Z"},` +
	`"telemetry":{"speed_kmh":48.5,"mileage_km":15230.4,"ignition":"on","gear":"D","parking_brake":"released",` +
	`"fuel_level_percent":61,"battery_level_percent":80,"remaining_range_km":412,"charging_status":"disconnected",` +
	`"onboard_voltage_v":12.6,"is_locked":false,"is_engine_running":true,"sunroof":"closed","key_status":"in",` +
	`"doors":{"front_left":"closed","front_right":"closed","rear_left":"closed","rear_right":"closed","trunk":"closed"},` +
	`"windows":{"front_left":"closed","front_right":"partially_open","rear_left":"closed","rear_right":"closed"},` +
	`"seatbelts":{"driver":"fastened","passenger":"unfastened"}},` +
	`"diagnostics":{"dtcs":["P0420"],"service_due_in_km":4200,"oil_life_percent":61,"warning_lamps":["tire_failure"]},` +
	`"connectivity":{"rsrp_dbm":-97,"firmware_version":"4.2.1"},` +
	`"oem_data":{"tire_kpa":[230,231,228,229],"cabin_c":21.5,"trip":{"km":12.4,"minutes":31}}}`
