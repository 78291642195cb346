import { Command } from '@commander-js/extra-typings'
import { messageOf } from '@plant-store/engine'
import {
  courierLimits,
  mintSecret,
  mintWebhookId,
  parseWebhookEvents,
  parseWebhookUrl,
  type WebhookId,
  type WebhookRepository,
} from '@plant-store/webhooks'
import { CommandError, exitCodes } from '../command-error.ts'
import { argument, countOf, jsonOption } from '../options.ts'
import { print, printSecret, table } from '../output.ts'
import { changeStore, readStore } from '../store-in-environment.ts'
import { duration, grouped, listed, minute } from '../words.ts'

const addWebhook = new Command('add')
  .description(
    'Add a webhook and print its secret. This is the only time that it is shown.',
  )
  .argument('<url>', 'to POST plants to, https')
  .option(
    '--events <events>',
    'what it hears of: some of added,changed,removed',
    argument(parseWebhookEvents),
    ['added'] as const,
  )
  .option(
    '--allow-private',
    'take http too, and addresses of this machine and of private networks',
    false,
  )
  .addOption(jsonOption)
  .action(async (text, { allowPrivate, events, json }) => {
    const url = webhookUrl(text, allowPrivate)
    await using storage = await changeStore()
    const { webhooksMax } = courierLimits
    const webhooks = await storage.webhooks.list()
    if (webhooks.length >= webhooksMax) {
      throw new CommandError(`there are ${webhooksMax} webhooks already: remove one`)
    }
    const id = mintWebhookId()
    const secret = mintSecret()
    await storage.webhooks.add(
      { id, url, allowsPrivate: allowPrivate, events, createdAt: new Date() },
      secret,
    )
    const result = { id, url, allowPrivate, events, secret }
    await printSecret({ json }, result, secret, () => storage.webhooks.remove(id))
    // Write this to standard error, so that a script receives only the secret.
    if (!json) {
      process.stderr.write(
        `The webhook ${id} gets every plant that is ${listed(events, 'or')} from now on.\n`,
      )
      const twin = webhooks.find(webhook => webhook.url === url)
      if (twin !== undefined) {
        process.stderr.write(
          `The webhook ${twin.id} has the same URL, and gets them too.\n`,
        )
      }
    }
  })

const listWebhooks = new Command('list')
  .description('List the webhooks, and what waits for each. Never the secret.')
  .addOption(jsonOption)
  .action(async output => {
    await using store = await readStore()
    const webhooks = await store.webhooks.list()
    const figures = await store.webhooks.outbox.figures()
    const results = webhooks.map(({ failingSince = null, ...webhook }) => {
      const ownFigures = figures.find(figure => figure.webhook === webhook.id)
      const { waiting = 0, givenUp = 0, oldestMs } = ownFigures ?? {}
      return {
        ...webhook,
        failingSince,
        waiting,
        oldestSeconds: oldestMs === undefined ? null : oldestMs / 1000,
        givenUp,
      }
    })
    const rows = results.map(result => ({
      ID: result.id,
      STATE: result.state,
      EVENTS: result.events.join(','),
      WAITING: grouped(result.waiting),
      'GIVEN UP': grouped(result.givenUp),
      OLDEST: result.oldestSeconds === null ? '-' : duration(result.oldestSeconds),
      'FAILING SINCE': minute(result.failingSince),
      URL: result.url,
    }))
    await print(output, results, table(rows, 'There are no webhooks.'))
  })

const logWebhook = new Command('log')
  .description(
    'List what was given up and what waits, with the reason of the last failure.',
  )
  .argument('<id>', 'of the webhook')
  .option('--limit <count>', 'how many deliveries', countOf, 20)
  .addOption(jsonOption)
  .action(async (id, { limit, json }) => {
    await using store = await readStore()
    const webhooks = await store.webhooks.list()
    const webhook = webhooks.find(candidate => candidate.id === id)
    if (webhook === undefined) {
      throw noWebhook(id)
    }
    const deliveries = await store.webhooks.outbox.deliveriesOf(webhook.id, limit)
    const all = deliveries.map(
      ({ plant, event, addedAt, attempts, nextAttemptAt = null, reason = null }) => ({
        // Print the id as text, because most readers of JSON would round it.
        plant: `${plant.id}`,
        event,
        addedAt,
        attempts,
        nextAttemptAt,
        reason,
      }),
    )
    const rows = all.map(result => ({
      PLANT: result.plant,
      EVENT: result.event,
      SINCE: minute(result.addedAt),
      FAILED: `${result.attempts}`,
      'NEXT ATTEMPT': minute(result.nextAttemptAt, 'given up'),
      REASON: result.reason ?? '-',
    }))
    await print({ json }, all, table(rows, `Nothing waits for ${id}.`))
  })

const changeEvents = new Command('events')
  .description('Change what a webhook hears of, from now on. What waits for it stays.')
  .argument('<id>', 'of the webhook')
  .argument('<events>', 'some of added,changed,removed', argument(parseWebhookEvents))
  .addOption(jsonOption)
  .action(async (id, events, output) => {
    await changeWebhook(id, webhooks => webhooks.setEvents(id as WebhookId, events))
    const words = `${id} gets every plant that is ${listed(events, 'or')} from now on.`
    await print(output, { id, events }, words)
  })

const rotateSecret = new Command('rotate')
  .description('Give a webhook a new secret and print it. The old one no longer signs.')
  .argument('<id>', 'of the webhook')
  .addOption(jsonOption)
  .action(async (id, { json }) => {
    const secret = mintSecret()
    await changeWebhook(id, async webhooks => {
      const all = await webhooks.list()
      if (!all.some(webhook => webhook.id === id)) {
        return false
      }
      // Print it first: nobody could read a secret that replaces the old one unseen.
      await print({ json }, { id, secret }, secret)
      return webhooks.rotate(id as WebhookId, secret).catch(cause => {
        throw new CommandError(
          `${messageOf(cause)} (the old secret may still sign: rotate it again)`,
        )
      })
    })
    if (!json) {
      process.stderr.write(`The old secret of ${id} no longer signs.\n`)
    }
  })

const commandOnOne = (name: 'remove' | 'retry', description: string, done: string) =>
  new Command(name)
    .description(description)
    .argument('<id>', 'of the webhook')
    .addOption(jsonOption)
    .action(async (id, output) => {
      await changeWebhook(id, webhooks => webhooks[name](id as WebhookId))
      await print(output, { [done]: id }, `${id} is ${done}.`)
    })

export const webhook = new Command('webhook')
  .description('Manage the webhooks that hear of new, changed and removed plants.')
  .addCommand(addWebhook)
  .addCommand(listWebhooks)
  .addCommand(
    commandOnOne('remove', 'Remove a webhook and all that waits for it.', 'removed'),
  )
  .addCommand(
    commandOnOne(
      'retry',
      'Try at once what failed, including what was given up. Starts a stopped webhook.',
      'retried',
    ),
  )
  .addCommand(changeEvents)
  .addCommand(rotateSecret)
  .addCommand(logWebhook)

/** @param change resolves to whether there is such a webhook */
async function changeWebhook(
  id: string,
  change: (webhooks: WebhookRepository) => Promise<boolean>,
) {
  await using storage = await changeStore()
  if (!(await change(storage.webhooks))) {
    throw noWebhook(id)
  }
}

const noWebhook = (id: string) =>
  new CommandError(`there is no webhook ${id}: see plant-store webhook list`)

function webhookUrl(text: string, allowsPrivate: boolean) {
  try {
    return parseWebhookUrl(text, allowsPrivate)
  } catch (error) {
    throw new CommandError(`the URL ${messageOf(error)}`, exitCodes.usage)
  }
}
