declare module 'swagger-ui-dist/absolute-path.js' {
  /** @returns the folder that holds the files of Swagger UI */
  export default function absolutePath(): string
}
