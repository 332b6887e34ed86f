package flashdb

// Sentinels are the errors that keep their identity over the control socket.
var Sentinels = sentinels
