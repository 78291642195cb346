import type { ClientOptions } from './request.ts'

/**
 * Returns the URL of an operation below the base URL, which may have a path.
 *
 * @throws TypeError if the base URL is none. The message does not contain it, because it
 *   may have a password
 */
export function operationUrl(
  { baseUrl }: Pick<ClientOptions, 'baseUrl'>,
  path: string,
): string {
  const text = `${baseUrl}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isBaseUrl =
    url !== undefined &&
    /^https?:$/.test(url.protocol) &&
    url.username === '' &&
    url.password === '' &&
    !/[?#]/.test(text)
  if (!isBaseUrl) {
    throw new TypeError(
      'baseUrl must be an http or https URL without credentials, query and fragment, such as http://127.0.0.1:3000',
    )
  }
  return url.href.replace(/\/$/, '') + path
}
