#!/opt/plant-store/lib/node
// Ends with 0 when the server of this container can serve, and with 1 when it cannot.
const { PORT = '3000', BASE_URL } = process.env
const path = BASE_URL ? new URL(BASE_URL).pathname.replace(/\/$/, '') : ''
fetch(`http://127.0.0.1:${PORT}${path}/readyz`).then(
  ({ ok }) => process.exit(ok ? 0 : 1),
  () => process.exit(1),
)
