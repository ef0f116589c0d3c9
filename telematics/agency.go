package telematics

// AgencyID identifies an agency, the tenant that owns vehicles. Zero means none:
// an administrator without one sees every agency.
type AgencyID int64

// Agency is a tenant of the platform.
type Agency struct {
	ID   AgencyID
	Code string // short, unique, such as "MUC"
	Name string
}
