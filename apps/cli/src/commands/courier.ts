import { Command } from '@commander-js/extra-typings'

export const courier = new Command('courier')
  .description('Deliver to the webhooks until SIGTERM or SIGINT arrives, beside servers with COURIER=off.')
  .action(async () => {
    const api = await import('@plant-store/api/serve')
    await api.runCourier()
  })
