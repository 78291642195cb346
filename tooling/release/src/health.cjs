#!/opt/plant-store/lib/node
// Exits with 0 if the server of this container can serve, and otherwise with 1.
const { PORT = '3000', BASE_URL } = process.env
const path = BASE_URL ? new URL(BASE_URL).pathname.replace(/\/$/, '') : ''
fetch(`http://127.0.0.1:${PORT}${path}/readyz`).then(
  ({ ok }) => process.exit(ok ? 0 : 1),
  () => process.exit(1),
)
