// Package alerts is what a fleet is watched for: the rules, the limits that an agency sets for
// them, and alerts. It has no I/O.
//
// A rule holds of a vehicle, or of a person, while its condition is true. When it has held for the
// rule's time, an alert opens; there is one open alert of a rule and a vehicle, or of a rule and a
// booking, whatever instances do. It is cleared when the condition has ended, and acknowledged when
// a member of staff has seen it: neither needs the other.
package alerts
