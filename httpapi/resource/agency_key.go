package resource

import "motorpool/rental"

// AgencyKey is a key that an agency's apps sign requests with, without its secret.
type AgencyKey struct {
	ID         string          `json:"id"`
	AgencyID   int64           `json:"agency_id"`
	AgencyCode string          `json:"agency_code"`
	State      rental.KeyState `json:"state"`
	RetiresAt  *string         `json:"retires_at"`
	CreatedAt  string          `json:"created_at"`
}

// AgencyKeyWithSecret is the one body that shows a secret.
type AgencyKeyWithSecret struct {
	AgencyKey
	Secret string `json:"secret"` // hexadecimal digits
}

// NewAgencyKey returns a key without its secret.
func NewAgencyKey(k rental.AgencyKey) AgencyKey {
	return AgencyKey{
		ID: k.ID, AgencyID: int64(k.Agency), AgencyCode: k.AgencyCode, State: k.State,
		RetiresAt: TimestampOrNull(k.Retires), CreatedAt: Timestamp(k.Created),
	}
}
