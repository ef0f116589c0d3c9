// Package enrolment gives telematics units certificates with which they log in to the MQTT broker,
// and revokes them. An authority is a folder that the operator keeps:
//
//	ca.key             private key of the certificate authority (ca.crt)
//	codes.json         one-time codes, as hashes, and what was issued for them
//	certificates.json  what was issued and has not expired
//
// and a revocation list (CRL), which the MQTT broker reads:
//
//	operator ─ NewCode ─► code ─► unit ─ code, CSR ─► Handler ─ Issue ─► certificate
//	unit ─ certificate (TLS), CSR ─► Handler ─ Renew ─► the next certificate
//	operator ─ Revoke ─► revocation list ─► MQTT broker
//
// Every change of the folder holds the lock of codes.json. A certificate is stored before it is
// returned, so that each one can be revoked. A code belongs to the first key that uses it, and so
// does the renewal of a certificate: the same key gets the same certificate again, since the
// response may have been lost.
package enrolment
